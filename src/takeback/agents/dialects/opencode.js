// Takeback's plugin for OpenCode and Kilo. `takeback install` writes this file and replaces it.
// It passes events to `takeback hook` and does what the answer says. It never breaks the agent:
// without an answer, or without one in time, the agent goes on.
import { spawn } from "node:child_process"

const COMMAND = "@command@"
const REPORTING = "@reporting@"
const FIRST_LOOK = 300_000
const LOOK = 60_000
const END = 10_000
const READS = new Set(
  "read glob grep list lsp webfetch websearch codesearch todowrite todoread question skill".split(" "),
)
const agent = /kilo[^/]*$/.test(process.execPath) ? "kilo" : "opencode"

function ask(payload, command, limit) {
  return new Promise((resolve) => {
    let said = ""
    const done = () => {
      try {
        resolve(JSON.parse(said))
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
        process.kill(-hook.pid, "SIGKILL")
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

const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time))

export const Takeback = async ({ client, directory }) => {
  const parents = new Map() // the session that a session is a sub-agent of; empty if none
  const prompts = new Map() // the newest prompt of a session, while it works
  const sessions = new Set() // those that had a prompt
  const removed = new Map() // the first message that going back removed
  const aborted = new Set()
  const calls = new Map() // the session of each call that runs, and since when
  const asked = new Map() // the call of each permission that the user is asked for
  const pending = new Set()

  const parentOf = async (session) => {
    if (!parents.has(session)) {
      const known = client.session.get({ path: { id: session } }).then((got) => got?.data?.parentID)
      parents.set(session, (await Promise.race([known, sleep(2000)]).catch(() => "")) ?? "")
    }
    return parents.get(session)
  }

  const rootOf = async (session) => {
    for (let parent; (parent = await parentOf(session)); ) session = parent
    return session
  }

  const pipe = async (hook, input, output, more = {}, limit = LOOK) => {
    const session = await rootOf(input.sessionID)
    const own = session === input.sessionID ? {} : { subagent: input.sessionID }
    const command = hook === "chat.message" ? REPORTING : COMMAND
    const payload = { agent, hook, session, ...own, cwd: directory, ...more, input, output }
    const answer = (await ask(payload, command, limit)) ?? {}
    if (answer.systemMessage) {
      const body = { title: "Takeback", message: answer.systemMessage, variant: "info" }
      client.tui.showToast({ body }).catch(() => {})
    }
    return answer
  }

  // Whatever fails here is ours, not the agent's.
  const safely = (work) => {
    const result = work().catch(() => ({}))
    pending.add(result)
    result.finally(() => pending.delete(result))
    return result
  }

  const runs = (session) => [...calls.values()].some((call) => call.session === session)

  const begin = (id) => {
    if (calls.has(id)) calls.get(id).began = Date.now()
  }

  const stop = async (session, turn, earlier) => {
    // Esc is reported before the command that it stops has ended.
    for (let n = 0; n < 20 && runs(session); n++) await sleep(100)
    await Promise.all(earlier)
    const more = { turn, aborted: aborted.delete(session) }
    await pipe("event:session.idle", { sessionID: session }, undefined, more)
  }

  const hear = async (type, at) => {
    const session = at?.sessionID
    if (type === "session.created") parents.set(at.info.id, at.info.parentID ?? "")
    else if (type === "session.error" && at.error?.name === "MessageAbortedError") aborted.add(session)
    else if (type === "message.removed" && !removed.has(session)) removed.set(session, at.messageID)
    else if (type === "session.idle" && prompts.has(session)) {
      const turn = prompts.get(session)
      prompts.delete(session)
      return safely(() => stop(session, turn, [...pending]))
    } else if (type === "permission.asked" && calls.has(at.tool?.callID)) {
      asked.set(at.id, at.tool.callID)
      return safely(() => pipe(`event:${type}`, at))
    } else if (type === "permission.replied") begin(asked.get(at.requestID))
    else if (type === "message.part.updated" && at.part?.state?.status === "error") {
      // A call that failed or was refused has no other end.
      if (calls.delete(at.part.callID)) return safely(() => pipe(`event:${type}`, at))
    }
  }

  return {
    event: async ({ event }) => {
      await hear(event.type, event.properties).catch(() => {})
    },

    "chat.message": async (input, output) => {
      const answer = await safely(async () => {
        const { message, parts } = output
        const session = input.sessionID
        prompts.set(session, message.id)
        if (await parentOf(session)) return {}
        sessions.add(session)
        const rewound = removed.get(session)
        removed.delete(session)
        const shown = { message, parts: parts.filter((part) => part.type === "text") }
        return pipe("chat.message", input, shown, { rewound }, FIRST_LOOK)
      })
      const like = output.parts.at(-1)
      if (answer.note && like) {
        const { sessionID, messageID, id } = like
        const own = { id: `${id}0`, type: "text", text: answer.note, synthetic: true }
        output.parts.push({ sessionID, messageID, ...own })
      }
    },

    "tool.execute.before": async (input, output) => {
      if (READS.has(input.tool)) return
      calls.set(input.callID, { session: input.sessionID })
      const answer = await safely(() => pipe("tool.execute.before", input, output))
      begin(input.callID)
      if (answer.deny) throw new Error(answer.deny)
    },

    "tool.execute.after": async (input, output) => {
      const call = calls.get(input.callID)
      if (!call) return
      calls.delete(input.callID)
      const took = Date.now() - call.began
      const answer = await safely(() => pipe("tool.execute.after", input, output, { took }))
      if (answer.note && typeof output?.output === "string") output.output += `\n\n${answer.note}`
      else if (answer.note) output?.content?.push?.({ type: "text", text: answer.note })
    },

    dispose: async () => {
      await Promise.all(pending)
      for (const sessionID of sessions) await safely(() => pipe("dispose", { sessionID }, undefined, {}, END))
    },
  }
}
