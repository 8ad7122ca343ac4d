// Takeback's extension for pi. `takeback install` writes this file and replaces it.
// It passes events to `takeback hook` and does what the answer says. It never breaks the agent:
// without an answer, or without one in time, the agent goes on.
import { spawn } from "node:child_process"

const COMMAND = "@command@"
const REPORTING = "@reporting@"
const FIRST_LOOK = 300_000
const LOOK = 60_000
const END = 10_000
const READS = new Set(["read", "grep", "find", "ls"])

function ask(payload: object, command: string, limit: number): Promise<any> {
  return new Promise((resolve) => {
    let said = ""
    const done = () => {
      try {
        resolve(JSON.parse(said) ?? {})
      } catch {
        resolve({})
      }
    }
    try {
      // A group of its own, that can be ended: Ctrl-C in the terminal is meant for the agent.
      const hook = spawn("/bin/sh", ["-c", command], {
        stdio: ["pipe", "pipe", "ignore"],
        detached: true,
      })
      const late = setTimeout(() => {
        said = ""
        done()
        hook.stdout.destroy()
        process.kill(-hook.pid!, "SIGKILL")
      }, limit)
      hook.on("error", done)
      hook.on("close", () => (clearTimeout(late), done()))
      hook.stdout.on("data", (piece) => (said += piece))
      hook.stdin.on("error", () => {})
      hook.stdin.end(JSON.stringify(payload))
    } catch {
      done()
    }
  })
}

export default function (pi: any) {
  const prompts: { turn: string; leaf: string }[] = [] // those on the way to where the session is
  const calls = new Map<string, number>() // when each call that runs began
  let note = ""
  let turn = ""
  let last: any // how the agent ended

  const pipe = async (event: any, ctx: any, more: object = {}, limit = LOOK) => {
    try {
      const at = ctx.sessionManager
      const where = {
        cwd: ctx.cwd,
        sessionId: at.getSessionId(),
        sessionFile: at.getSessionFile(),
        leafId: at.getLeafId(),
      }
      const model = ctx.model?.id
      const command = event.type === "input" ? REPORTING : COMMAND
      const answer = await ask({ event, ctx: where, turn, model, ...more }, command, limit)
      if (answer.systemMessage && ctx.hasUI) ctx.ui.notify(answer.systemMessage, "info")
      return answer
    } catch {
      return {}
    }
  }

  // The oldest prompt that is no longer on the way: the user went back behind it.
  const goneBack = (at: any) => {
    const way = new Set(at.getBranch().map((entry: any) => entry.id))
    const first = prompts.findIndex((prompt) => !way.has(prompt.leaf))
    return first < 0 ? undefined : prompts.splice(first)[0].turn
  }

  const started = (event: any, ctx: any) => {
    const at = ctx.sessionManager
    const leaf = at.getLeafId() ?? ""
    const beside = at.getEntries().filter((entry: any) => (entry.parentId ?? "") === leaf).length
    const rewound = goneBack(at)
    turn = `${leaf}.${beside}`
    return pipe({ ...event, images: undefined }, ctx, { rewound }, FIRST_LOOK)
  }

  pi.on("session_start", (event: any, ctx: any) => pipe(event, ctx, {}, END).then(() => undefined))

  pi.on("input", async (event: any, ctx: any) => {
    if (event.streamingBehavior) return
    try {
      note = (await started(event, ctx)).note ?? ""
    } catch {
      note = ""
    }
  })

  pi.on("before_agent_start", async () => {
    const content = note
    note = ""
    if (content) return { message: { customType: "takeback", content, display: true } }
  })

  pi.on("tool_call", async (event: any, ctx: any) => {
    if (READS.has(event.toolName)) return
    const answer = await pipe(event, ctx)
    if (answer.deny) return { block: true, reason: answer.deny }
    calls.set(event.toolCallId, Date.now())
  })

  pi.on("tool_result", async (event: any, ctx: any) => {
    const began = calls.get(event.toolCallId)
    if (began === undefined) return
    calls.delete(event.toolCallId)
    const answer = await pipe({ ...event, details: undefined }, ctx, { took: Date.now() - began })
    if (answer.note) return { content: [...event.content, { type: "text", text: answer.note }] }
  })

  pi.on("agent_end", async (event: any) => {
    last = event.messages?.at?.(-1)
  })

  pi.on("agent_settled", async (_event: any, ctx: any) => {
    const leaf = ctx.sessionManager.getLeafId()
    if (turn && leaf) prompts.push({ turn, leaf })
    const messages = [{ role: last?.role, stopReason: last?.stopReason }]
    await pipe({ type: "agent_end", messages }, ctx)
    turn = ""
  })

  pi.on("session_shutdown", async (event: any, ctx: any) => {
    await pipe(event, ctx, {}, END)
  })
}
