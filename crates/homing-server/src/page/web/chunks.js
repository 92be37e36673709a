// The output of a task by pieces of fixed size, fetched when they are wanted and forgotten when they are not; and the rows that its bytes make.
//
// A row ends with its line. A line that is very long is cut: at a multiple of CUT before which there was no end of a line for as long. So where rows begin depends on
// the bytes alone, not on where somebody began to read, and no row needs more than the pieces beside its own.

import { api } from "./api.js";

export const SIZE = 65536;
const CUT = 8192;
/** Pieces kept; the rest is asked for again. */
const MOST = 96;
const NEWLINE = 10;

export class Chunks {
  constructor(id, changed) {
    this.id = id;
    this.end = 0;
    this.dropped = 0;
    this.complete = false;
    this.changed = changed;
    this.pieces = new Map();
    this.asked = new Map();
    /** Stretches that are not kept: from, to. */
    this.gaps = [];
    this.closer = new AbortController();
  }

  close() {
    this.closer.abort();
  }

  get last() {
    return Math.max(0, Math.floor((this.end - 1) / SIZE));
  }

  /** What is known of a piece: as much of it as there is. */
  has(number) {
    const piece = this.pieces.get(number);
    return Boolean(piece) && piece.upto >= Math.min(this.end, (number + 1) * SIZE);
  }

  /** Whether the rows of a piece can be told. */
  ready(number) {
    return [number - 1, number, number + 1].every((near) => near < 0 || near > this.last || this.has(near) || this.skips(near));
  }

  skips(number) {
    return this.gaps.some(({ from, to }) => from <= number * SIZE && to >= Math.min(this.end, (number + 1) * SIZE));
  }

  /** Asks for a piece and its neighbours, once each. */
  want(number) {
    for (const near of [number, number + 1, number - 1]) {
      if (near >= 0 && near <= this.last && !this.has(near) && !this.skips(near) && !this.asked.has(near)) {
        // Not before it is noted as asked for: a fetch that has nothing to do is over at once.
        this.asked.set(near, Promise.resolve().then(() => this.fetch(near)));
      }
    }
    return Promise.all([number - 1, number, number + 1].map((near) => this.asked.get(near)));
  }

  async fetch(number) {
    const begin = number * SIZE;
    try {
      let at = begin;
      let upto = begin;
      const parts = [];
      let start = null;
      while (at < Math.min(this.end, begin + SIZE)) {
        const part = await api.output(this.id, { offset: at, limit: begin + SIZE - at }, this.closer.signal);
        this.dropped = part.dropped;
        if (part.gap) this.gap(at, part.offset, part.dropped);
        // What is missing up to here is known to be missing.
        upto = Math.min(begin + SIZE, part.offset);
        if (!part.bytes.length || part.offset >= begin + SIZE) break;
        if (start === null) start = part.offset;
        else if (part.gap) parts.push(new Uint8Array(part.gap));
        const bytes = part.bytes.subarray(0, begin + SIZE - part.offset);
        parts.push(bytes);
        at = upto = part.offset + bytes.length;
      }
      if (start !== null) this.keep(number, start, join(parts), upto);
    } catch (error) {
      if (error.name !== "AbortError") this.failed = error;
    } finally {
      this.asked.delete(number);
    }
    if (!this.closer.signal.aborted) this.changed();
  }

  gap(from, to, dropped) {
    const known = this.gaps.find((gap) => gap.to === to);
    if (known) known.from = Math.min(known.from, from);
    else this.gaps.push({ from: Math.max(0, Math.min(from, to - dropped)), to });
    this.gaps.sort((a, b) => a.from - b.from);
  }

  keep(number, start, bytes, upto = start + bytes.length) {
    this.pieces.delete(number);
    this.pieces.set(number, { start, bytes, upto, rows: null });
    for (const near of [number - 1, number + 1]) if (this.pieces.has(near)) this.pieces.get(near).rows = null;
    if (this.pieces.size > MOST) this.pieces.delete(this.pieces.keys().next().value);
  }

  /** Takes in what was printed since. Whole new pieces are kept only if somebody looks at the end; else they are asked for when they are wanted. */
  append(part, looking) {
    if (part.gap) this.gap(part.offset - part.gap, part.offset, part.dropped);
    this.dropped = part.dropped;
    let { offset, bytes } = part;
    while (bytes.length) {
      const number = Math.floor(offset / SIZE);
      const take = bytes.subarray(0, (number + 1) * SIZE - offset);
      const piece = this.pieces.get(number);
      if (piece && piece.start + piece.bytes.length === offset) this.keep(number, piece.start, join([piece.bytes, take]));
      else if (looking && !piece && (offset % SIZE === 0 || part.gap)) this.keep(number, offset, take);
      offset += take.length;
      bytes = bytes.subarray(take.length);
    }
    this.end = Math.max(this.end, offset);
  }

  /** The stretch that is not kept around or right before an offset. */
  gapAt(offset) {
    return this.gaps.find(({ from, to }) => from <= offset && offset <= to);
  }

  /** The rows that begin in a piece, as offsets; nothing while they cannot be told. */
  rows(number) {
    if (!this.ready(number)) return null;
    const piece = this.pieces.get(number);
    if (!piece) return [];
    piece.rows ??= this.starts(number, piece);
    this.pieces.delete(number);
    this.pieces.set(number, piece);
    return piece.rows;
  }

  starts(number, piece) {
    const before = this.pieces.get(number - 1);
    const joined = before && before.start + before.bytes.length === piece.start;
    const tail = joined ? before.bytes.subarray(-CUT) : new Uint8Array(0);
    const bytes = join([tail, piece.bytes]);
    const base = piece.start - tail.length;
    const found = [];
    // The last end of a line; where nothing came before, the place itself is the start of one.
    let newline = joined ? base + tail.lastIndexOf(NEWLINE) : piece.start - 1;
    if (joined && newline < base) newline = before.start < base ? base - 1 - CUT : before.start - 1;
    if (newline === piece.start - 1) found.push(piece.start);
    const until = piece.start + piece.bytes.length;
    let at = piece.start;
    while (at < until) {
      const next = bytes.indexOf(NEWLINE, at - base);
      const stop = next < 0 ? until : base + next;
      for (let cut = Math.ceil(at / CUT) * CUT; cut < stop; cut += CUT) {
        if (newline < cut - CUT && cut > newline + 1) {
          let place = cut;
          while (place < stop && place < cut + 3 && (bytes[place - base] & 0xc0) === 0x80) place += 1;
          if (place > piece.start || !found.length) found.push(place);
        }
      }
      if (next < 0) break;
      newline = stop;
      at = stop + 1;
      if (at < until) found.push(at);
    }
    return found;
  }

  /** The bytes of a row, without the end of its line. */
  row(from, to) {
    const number = Math.floor(from / SIZE);
    const parts = [];
    for (let near = number; near * SIZE < to; near += 1) {
      const piece = this.pieces.get(near);
      if (!piece) break;
      parts.push(piece.bytes.subarray(Math.max(0, from - piece.start), Math.max(0, to - piece.start)));
    }
    const bytes = join(parts);
    return bytes.at(-1) === NEWLINE ? bytes.subarray(0, -1) : bytes;
  }
}

function join(parts) {
  if (parts.length === 1) return parts[0];
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) { whole.set(part, at); at += part.length; }
  return whole;
}
