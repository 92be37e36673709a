// homing install: this file is written and taken out by it; keep words of your own elsewhere.
// Tells the commands that opencode runs which session they belong to, and by what server it is reached, so that homing can bring results home.
export const Homing = async ({ serverUrl }) => {
  const serves = async (session) => {
    try {
      const answer = await fetch(new URL(`/session/${session}`, serverUrl), { signal: AbortSignal.timeout(300) })
      return answer.ok || answer.status === 401
    } catch {
      return false
    }
  }
  return {
    "shell.env": async (input, output) => {
      if (!input.sessionID) return
      output.env.OPENCODE_SESSION_ID = input.sessionID
      if (serverUrl && (await serves(input.sessionID))) output.env.OPENCODE_SERVER_URL = String(serverUrl)
    },
  }
}
