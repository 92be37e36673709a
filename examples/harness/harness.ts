// A harness in TypeScript, without dependencies: submit a task, go on, hear of its end once, also when the daemon was restarted.
//
//     homing daemon start
//     node examples/harness/harness.ts        (Node 22.18 or later runs TypeScript as it is)
//
// `HOMING_HOME` names the home, as everywhere.

import { randomUUID } from "node:crypto";
import { request, type IncomingMessage } from "node:http";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

type Task = { id: string; name: string | null; status: string };
type Notice = { id: string; task: { id: string }; status: string; outcome: { exit_code: number | null }; output_tail: string };
type Event = { type: string; task_id: string };

/** What the daemon refused, in its own words. */
class Refused extends Error {}

/** HTTP on the Unix socket of a home. Each call opens a connection of its own; nothing is kept that a restart could break. */
class Daemon {
  readonly home: string;
  readonly owner: string;

  constructor(home: string, owner: string) {
    this.home = home;
    this.owner = owner;
  }

  open(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const all = { "content-type": "application/json", "homing-owner": this.owner, ...headers };
      const call = request({ socketPath: join(this.home, "homing.sock"), method, path, headers: all, agent: false }, resolve);
      call.on("error", reject);
      call.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  /** One request. The daemon may be restarting: what is safe to repeat is repeated. */
  async call<Answer>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    for (let attempt = 0; attempt < 100; attempt++) {
      try {
        const response = await this.open(method, path, body, headers);
        let text = "";
        for await (const piece of response.setEncoding("utf8")) text += piece;
        const answer = JSON.parse(text || "null");
        if ((response.statusCode ?? 500) >= 400) throw new Refused(`${answer.detail} (${answer.code}): ${answer.advice}`);
        return answer;
      } catch (error) {
        if (error instanceof Refused) throw error;
        await pause(100);
      }
    }
    throw new Error("no daemon answers: `homing daemon start`");
  }

  submit(shell: string, fields: object = {}): Promise<Task> {
    // The key makes repeating safe: the same key and body is the same task.
    return this.call("POST", "/v1/tasks", { shell, ...fields }, { "idempotency-key": randomUUID() });
  }

  get inbox(): string {
    return `/v1/inbox/${encodeURIComponent(this.owner)}`;
  }

  acknowledge(notice: Notice): Promise<unknown> {
    return this.call("POST", `${this.inbox}/ack`, { ids: [notice.id] });
  }

  /** Every result that waits for this owner, for ever, each under a lease: what is not acknowledged is there again. */
  async *results(): AsyncGenerator<Notice> {
    for (;;) {
      const wish = { max: 10, lease_ms: 60000, wait_ms: 20000 };
      yield* (await this.call<{ items: Notice[] }>("POST", `${this.inbox}/take`, wish)).items;
    }
  }

  /**
   * Server-sent events, from the oldest that is kept. After a break it goes on behind the last one that was seen: none is missed and none
   * comes twice. A break that outlives the log brings `reset`, with the tasks as they are.
   */
  async *events(): AsyncGenerator<Event> {
    let after = "";
    let coming = "";
    for (;;) {
      const begin = after ? "" : "&from=oldest";
      const start = after ? { "last-event-id": after } : {};
      try {
        const stream = await this.open("GET", `/v1/events?owner=${encodeURIComponent(this.owner)}${begin}`, undefined, start);
        let rest = "";
        for await (const piece of stream.setEncoding("utf8")) {
          const lines = (rest + piece).split("\n");
          rest = lines.pop() ?? "";
          for (const line of lines) {
            if (line.startsWith("id: ")) coming = line.slice(4);
            else if (line.startsWith("data: ")) {
              after = coming; // not before the event is here
              yield JSON.parse(line.slice(6));
            }
          }
        }
      } catch {
        await pause(100);
      }
    }
  }
}

const home = process.env.HOMING_HOME || join(homedir(), ".local/state/homing");
const daemon = new Daemon(home, "harness-typescript");
const task = await daemon.submit("echo working; exit 3", { name: "sample" });
console.log(`submitted ${task.name}, and free to do something else`);
for await (const event of daemon.events()) {
  if (event.task_id !== task.id) continue;
  console.log(`event ${event.type}`);
  if (event.type === "task.completed") break;
}
for await (const notice of daemon.results()) {
  await daemon.acknowledge(notice);
  if (notice.task.id !== task.id) continue;
  console.log(`result: ${notice.status}, exit code ${notice.outcome.exit_code}, printed ${JSON.stringify(notice.output_tail)}`);
  break;
}
const left = await daemon.call<{ items: Notice[] }>("GET", daemon.inbox);
console.log(`left in the inbox: ${left.items.length}`);
