// homing install: this file is written and taken out by it; keep words of your own elsewhere.
// Names the session of each command and of each call of homing's tools, and starts a turn of the session with what has ended. What ended while that was
// not possible goes with the next prompt.
import { spawn, spawnSync } from "node:child_process"

// As each notice begins, and where its id is.
const MARK = "[homing notice - not user input]"
const ID = /\(notice (n-[a-z0-9]+)\)/g
// What a waiter ends with when there is something to take.
const WAKE = 2
// `opencode run` ends with the turn: it starts no other, and what it confirms is confirmed at once.
const once = process.argv.includes("run")

export const Homing = async ({ client, serverUrl }) => {
  // As opencode's own configuration calls it.
  let homing = ["homing"]
  // What is known of each session: `carried` is its last message with a notice, `read` the last message that its model answered.
  const sessions = new Map()

  const here = (session) => {
    if (!sessions.has(session)) sessions.set(session, { busy: false })
    return sessions.get(session)
  }

  // The conversation that a session belongs to: a subagent has a session of its own, in which nobody reads.
  const root = (session) => {
    const state = here(session)
    state.root ??= (async () => {
      const parent = (await client.session.get({ path: { id: session } })).data?.parentID
      return parent ? root(parent) : session
    })().catch(() => session)
    return state.root
  }

  // The notices that are among the messages of a session since another process had it.
  const known = (session) => {
    const state = here(session)
    state.known ??= (async () => {
      const { data } = await client.session.messages({ path: { id: session }, query: { limit: 100 } })
      const texts = data.filter(({ info }) => info.role === "user").flatMap(({ parts }) => parts.map(({ text }) => text ?? ""))
      return texts.filter((text) => text.includes(MARK)).flatMap((text) => [...text.matchAll(ID)].map((found) => found[1]))
    })().catch(() => [])
    return state.known
  }

  const serves = async (session) => {
    try {
      const answer = await fetch(new URL(`/session/${session}`, serverUrl), { signal: AbortSignal.timeout(300) })
      return answer.ok || answer.status === 401
    } catch {
      return false
    }
  }

  // Runs a hook to its end: its code, and what it printed.
  const hook = (session, event, more = {}) =>
    new Promise((resolve) => {
      const options = { stdio: ["pipe", "pipe", "ignore"], timeout: event === "rewake" ? undefined : 5000 }
      const child = spawn(homing[0], [...homing.slice(1), "hook", "opencode", event], options)
      let said = ""
      child.stdout.setEncoding("utf8").on("data", (part) => (said += part))
      child.stdin.on("error", () => {})
      child.on("error", () => resolve({}))
      child.on("close", (code) => resolve({ code, said }))
      child.stdin.end(JSON.stringify({ session_id: session, ...more }))
      if (event === "rewake") child.unref()
    })

  // What waits for a session, in words; nothing where homing does not answer.
  const waiting = async (session, event, more) => {
    const { said } = await hook(session, event, { ...more, homing_known: await known(session) })
    try {
      return JSON.parse(said).hookSpecificOutput.additionalContext
    } catch {
      return undefined
    }
  }

  // Whether the model of a session has answered the last message with a notice. Ids grow with time.
  const answered = ({ read, carried }) => read !== undefined && (carried === undefined || carried <= read)

  // The session is idle: it is told what has ended, and after that what ends next.
  const idle = async (session) => {
    const state = here(session)
    state.busy = false
    let more = { homing_unanswered: !answered(state) }
    while (!state.busy) {
      const text = state.kept ?? (await waiting(session, "Stop", more))
      if (text) {
        // As the prompt before it: another agent could do what this one may not.
        const body = { ...state.as, parts: [{ type: "text", text }] }
        const sent = await client.session.promptAsync({ path: { id: session }, body }).catch((error) => ({ error }))
        state.kept = sent.error ? text : undefined
        return
      }
      if (state.waits) return
      more = { homing_unanswered: true }
      state.waits = true
      const { code } = await hook(session, "rewake")
      state.waits = false
      if (code !== WAKE) return
    }
  }

  return {
    config: async (config) => {
      const command = config.mcp?.homing?.command
      if (Array.isArray(command) && command.at(-1) === "mcp") homing = command.slice(0, -1)
    },
    "shell.env": async (input, output) => {
      if (!input.sessionID) return
      const session = await root(input.sessionID)
      output.env.OPENCODE_SESSION_ID = session
      if (serverUrl && (await serves(session))) output.env.OPENCODE_SERVER_URL = String(serverUrl)
    },
    "tool.execute.before": async (input, output) => {
      if (input.tool.startsWith("homing_")) output.args.opencode_session = await root(input.sessionID)
    },
    // The model is shown its calls again, and does not know of that argument.
    "experimental.chat.messages.transform": async (_, { messages }) => {
      for (const part of messages.flatMap(({ parts }) => parts)) {
        if (part.type === "tool" && part.tool.startsWith("homing_")) delete part.state.input?.opencode_session
      }
    },
    "chat.message": async (input, output) => {
      const session = input.sessionID
      if ((await root(session)) !== session) return
      const state = here(session)
      state.busy = true
      const { agent, model, variant } = output.message
      state.as = { agent, model, variant: variant ?? model?.variant }
      const last = output.parts.at(-1)
      const text = last && (state.kept ?? (await waiting(session, "UserPromptSubmit")))
      state.kept = undefined
      // Parts are kept in the order of their ids.
      const part = { id: `${last?.id}h`, sessionID: session, messageID: output.message.id, type: "text" }
      if (text) output.parts.push({ ...part, text, synthetic: true })
      if (output.parts.some(({ text }) => text?.includes(MARK))) state.carried = output.message.id
    },
    event: async ({ event }) => {
      const { info, sessionID } = event.properties
      if (event.type === "message.updated" && info.role === "assistant" && info.time.completed && !info.error) {
        here(info.sessionID).read = info.parentID
      }
      if (event.type !== "session.idle" || (await root(sessionID)) !== sessionID) return
      if (!once) return void idle(sessionID)
      if (answered(here(sessionID))) {
        // A hook whose words lead nowhere takes nothing.
        const options = { input: JSON.stringify({ session_id: sessionID }), stdio: ["pipe", "ignore", "ignore"], timeout: 5000 }
        spawnSync(homing[0], [...homing.slice(1), "hook", "opencode", "Stop"], options)
      }
    },
  }
}
