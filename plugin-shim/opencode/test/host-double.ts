/** The host's in-process client, written by hand: it is opencode's API, not ours. */
import type { PluginInput } from "@opencode-ai/plugin"
import type { Json } from "../src/wire.ts"

export type Client = PluginInput["client"]
type Handler = (args: { path: { id: string; messageID?: string }; body: Json; query: Json }) => unknown

export const OK = { status: 200 }
export const NOT_FOUND = {
  error: { name: "NotFoundError", data: { message: "no" } },
  response: { status: 404 },
}

export class HostDouble {
  readonly calls: { name: string; args: Json }[] = []
  readonly sessions = new Map<string, Json>()
  readonly messages = new Map<string, unknown>()
  readonly toasts: Json[] = []
  status: Json = {}
  agents: Json[] = []
  providers: unknown = { data: { providers: [], default: {} } }
  prompt: Handler = () => ({ data: { info: {}, parts: [{ type: "text", text: "verdict" }] } })
  promptAsync: Handler = () => ({ response: { status: 204 } })
  #ids = 0

  named(name: string): Json[] {
    return this.calls.filter((call) => call.name === name).map((call) => call.args)
  }

  get client(): Client {
    const call =
      (name: string, answer: Handler) =>
      async (args: {
        path: { id: string; messageID?: string }
        body: Json
        query: Json
      }): Promise<unknown> => {
        this.calls.push({ name, args: args as unknown as Json })
        return answer(args)
      }
    const session = {
      create: call("create", ({ body }) => {
        const info = { id: `ses_judge${++this.#ids}`, directory: "/p", ...body }
        this.sessions.set(info.id, info)
        return { data: info }
      }),
      list: call("list", () => ({ data: [...this.sessions.values()] })),
      get: call("get", ({ path }) =>
        this.sessions.has(path.id) ? { data: this.sessions.get(path.id), response: OK } : NOT_FOUND,
      ),
      delete: call("delete", ({ path }) => ({ data: this.sessions.delete(path.id) })),
      abort: call("abort", () => ({ data: true })),
      messages: call("messages", ({ path, query }) => {
        const all = this.messages.get(path.id)
        const limit = Number(query?.["limit"] ?? Infinity)
        return { data: Array.isArray(all) ? all.slice(-limit) : all }
      }),
      message: call("message", ({ path }) => {
        const all = this.messages.get(path.id)
        const wanted = (one: unknown) => (one as Stored).info.id === path.messageID
        return { data: Array.isArray(all) ? all.find(wanted) : undefined }
      }),
      todo: call("todo", () => ({
        data: [{ id: "1", content: "do it", status: "pending", priority: "high" }],
      })),
      status: call("status", () => ({ data: this.status })),
      prompt: call("prompt", (args) => this.prompt(args)),
      promptAsync: call("promptAsync", (args) => this.promptAsync(args)),
    }
    const tui = { showToast: call("toast", ({ body }) => ({ data: this.toasts.push(body) > 0 })) }
    const config = { providers: call("providers", () => this.providers) }
    const app = {
      agents: call("agents", () => ({ data: this.agents })),
      log: call("log", () => ({ data: true })),
    }
    return { session, tui, config, app } as unknown as Client
  }
}

let clock = 0

export type Stored = { info: Json & { id: string }; parts: Json[] }

/** A stored user message. */
export function user(text: string, part: Json = {}): Stored {
  const id = `msg_${String(++clock).padStart(6, "0")}`
  return {
    info: { id, role: "user", time: { created: clock } },
    parts: [{ type: "text", id: `p${id}`, text, ...part }],
  }
}

/** A stored assistant message. */
export function assistant(text: string, info: Json = {}, parts: Json[] = []): Stored {
  const id = `msg_${String(++clock).padStart(6, "0")}`
  return {
    info: { id, role: "assistant", finish: "stop", time: { created: clock, completed: clock }, ...info },
    parts: [{ type: "text", id: `p${id}`, text }, ...parts],
  }
}
