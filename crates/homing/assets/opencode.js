// homing install: this file is written and taken out by it; keep words of your own elsewhere.
// Tells the commands that opencode runs which session they belong to, and by what server it is reached, so that homing can bring results home.
// What ended while nobody could be told goes with the next prompt of the session.
import { spawn } from "node:child_process"

export const Homing = async ({ serverUrl }) => {
  // As opencode's own configuration calls it.
  let homing = ["homing"]
  const serves = async (session) => {
    try {
      const answer = await fetch(new URL(`/session/${session}`, serverUrl), { signal: AbortSignal.timeout(300) })
      return answer.ok || answer.status === 401
    } catch {
      return false
    }
  }
  // What waits for a session, in words; nothing where homing does not answer.
  const waiting = (session) =>
    new Promise((resolve) => {
      const words = [...homing.slice(1), "hook", "opencode", "UserPromptSubmit"]
      const child = spawn(homing[0], words, { stdio: ["pipe", "pipe", "ignore"], timeout: 5000 })
      let said = ""
      child.stdout.setEncoding("utf8").on("data", (more) => (said += more))
      child.stdin.on("error", () => {})
      child.on("error", () => resolve(undefined))
      child.on("close", () => {
        try {
          resolve(JSON.parse(said).hookSpecificOutput.additionalContext)
        } catch {
          resolve(undefined)
        }
      })
      child.stdin.end(JSON.stringify({ session_id: session }))
    })
  return {
    config: async (config) => {
      const command = config.mcp?.homing?.command
      if (Array.isArray(command) && command.at(-1) === "mcp") homing = command.slice(0, -1)
    },
    "shell.env": async (input, output) => {
      if (!input.sessionID) return
      output.env.OPENCODE_SESSION_ID = input.sessionID
      if (serverUrl && (await serves(input.sessionID))) output.env.OPENCODE_SERVER_URL = String(serverUrl)
    },
    "chat.message": async (input, output) => {
      const last = output.parts.at(-1)
      const text = last && (await waiting(input.sessionID))
      // Parts are kept in the order of their ids.
      const part = { id: `${last?.id}h`, sessionID: input.sessionID, messageID: output.message.id, type: "text" }
      if (text) output.parts.push({ ...part, text, synthetic: true })
    },
  }
}
