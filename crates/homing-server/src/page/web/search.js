// Finds a text in an output of any size, piece by piece, from a place on, in either direction. Letters count alike, small or large.

import { api } from "./api.js";

const PIECE = 4 << 20;
const encoder = new TextEncoder();
const one = new TextDecoder("windows-1252");
const utf8 = new TextDecoder();

/** Each byte as one letter, so that places in the text are places in the bytes. */
const letters = (bytes) => one.decode(bytes).toLowerCase();

/** Whether the bytes really are the text: letters of other alphabets may only look alike byte by byte. */
const same = (bytes, text) => utf8.decode(bytes).toLowerCase() === text.toLowerCase();

/** The offset of the next place, or null. `progress` hears how much was looked at, from 0 to 1. */
export async function find(id, text, { from, end, back, signal, progress }) {
  const wanted = letters(encoder.encode(text));
  const overlap = wanted.length - 1;
  if (!wanted.length) return null;
  let at = from;
  const whole = Math.max(1, back ? from : end - from);
  while (back ? at > 0 : at < end) {
    const begin = back ? Math.max(0, at - PIECE) : at;
    const part = await api.output(id, { offset: begin, limit: Math.min(PIECE, (back ? at - begin : end - begin) + overlap) || 1 }, signal);
    const hay = letters(part.bytes);
    const limit = back ? at - part.offset : hay.length;
    let place = back ? hay.lastIndexOf(wanted, limit - 1) : hay.indexOf(wanted);
    while (place >= 0) {
      if (same(part.bytes.subarray(place, place + wanted.length), text)) return part.offset + place;
      if (back && place === 0) break;
      place = back ? hay.lastIndexOf(wanted, place - 1) : hay.indexOf(wanted, place + 1);
    }
    if (back) at = begin;
    else if (part.next <= at) break;
    else at = part.bytes.length > overlap && part.next < end ? part.next - overlap : part.next;
    progress?.(Math.min(1, (back ? from - at : at - from) / whole));
  }
  return null;
}

/** Where a text is in a line. */
export function hits(line, text) {
  if (!text) return [];
  let [hay, wanted] = [line.toLowerCase(), text.toLowerCase()];
  if (hay.length !== line.length) [hay, wanted] = [line, text];
  const found = [];
  for (let at = hay.indexOf(wanted); at >= 0 && found.length < 200; at = hay.indexOf(wanted, at + wanted.length)) found.push([at, at + wanted.length]);
  return found;
}
