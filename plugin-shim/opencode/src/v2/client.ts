/**
 * opencode 2 behind the calls of opencode 1 that orders and judges make. A call that this version lacks is an
 * error of that call, as if the host had refused it.
 */
import type { Client } from "../site.ts"
import { list, model, record, text } from "../wire.ts"
import type { Json } from "../wire.ts"
import { callOf } from "./calls.ts"
import type { Calls } from "./calls.ts"
import { oldMessages } from "./messages.ts"

type Args = { path: { id: string }; body: Json; query?: { limit?: number } }
type Answer = { data?: unknown; error?: Json; response?: { status: number } }

/** With this rule a session may do nothing. */
const NOTHING = { action: "*", resource: "*", effect: "deny" }

/** A rule of an agent; the tool `shell` was `bash`. */
function oldRule(rule: unknown): Json {
  const { action, resource, effect } = record(rule)
  return { permission: action === "shell" ? "bash" : action, pattern: resource, action: effect }
}

export function clientOf(context: unknown): Client {
  async function ask<K extends keyof Calls>(name: K, ...args: Parameters<Calls[K]>): Promise<Answer> {
    const call = callOf(context, name)
    if (!call) return { error: { name: "Missing", message: `this opencode has no ${name}` } }
    try {
      return { data: await call(...args) }
    } catch (error) {
      const tag = text(record(error)["_tag"])
      const status = tag.includes("NotFound") ? 404 : 500
      return { error: { name: tag, message: text(record(error)["message"]) }, response: { status } }
    }
  }
  const messages = async ({ path, query }: Args): Promise<Answer> => {
    const got = await ask("session.context", { sessionID: path.id })
    return got.error ? got : { data: oldMessages(got.data).slice(-(query?.limit ?? Infinity)) }
  }
  const session = {
    async get({ path }: Args): Promise<Answer> {
      const got = await ask("session.get", { sessionID: path.id })
      if (got.error) return got
      const info = record(got.data)
      return { data: { ...info, directory: record(info["location"])["directory"] } }
    },
    messages,
    async message({ path }: { path: { id: string; messageID: string } }): Promise<Answer> {
      const got = await ask("session.context", { sessionID: path.id })
      return { data: oldMessages(got.data).find(({ info }) => record(info)["id"] === path.messageID) }
    },
    /** Its events say what a session does; opencode 2 has no call for it. */
    status: async (): Promise<Answer> => ({ data: {} }),
    /** It has no list of todos either. */
    todo: async (): Promise<Answer> => ({ data: [] }),
    /** Feedback, with an id that is the same when the order comes again: opencode keeps one message of an id. */
    promptAsync({ path, body }: Args): Promise<Answer> {
      const said = record(list(body["parts"])[0])
      const metadata = record(said["metadata"])
      const order = text(record(metadata["reflectd"])["order"]).replace(/[^A-Za-z0-9]/g, "")
      return ask("session.synthetic", {
        sessionID: path.id,
        id: `msg_${order}`,
        text: text(said["text"]),
        description: "reflectd",
        metadata,
        delivery: "steer",
      })
    },
    create: ({ body }: Args) => ask("session.create", { title: text(body["title"]), permissions: [NOTHING] }),
    async prompt({ path, body }: Args): Promise<Answer> {
      const sessionID = path.id
      const wanted = model(body["model"])
      const said = text(record(list(body["parts"])[0])["text"])
      const steps = [
        ...(wanted
          ? [
              () =>
                ask("session.switchModel", {
                  sessionID,
                  model: { providerID: wanted.providerID, id: wanted.modelID },
                }),
            ]
          : []),
        () => ask("session.prompt", { sessionID, prompt: { text: said } }),
        () => ask("session.wait", { sessionID }),
      ]
      for (const step of steps) {
        const done = await step()
        if (done.error) return done
      }
      const got = await messages({ path, body })
      if (got.error) return got
      const last = list(got.data).findLast(
        (message) => record(record(message)["info"])["role"] === "assistant",
      )
      return { data: last }
    },
    abort: ({ path }: Args) => ask("session.interrupt", { sessionID: path.id }),
    delete: ({ path }: Args) => ask("session.remove", { sessionID: path.id }),
  }
  /** `{providers: [{id, models: {<id>: {status}}}]}` of a flat list. */
  async function providers(): Promise<Answer> {
    const got = await ask("model.list", {})
    if (got.error) return got
    const found = new Map<string, Json>()
    for (const { providerID, id, status } of list(got.data).map(record)) {
      if (!text(providerID) || !text(id)) continue
      const models = found.get(text(providerID)) ?? {}
      found.set(text(providerID), { ...models, [text(id)]: { status } })
    }
    return { data: { providers: [...found].map(([id, models]) => ({ id, models })) } }
  }
  /** `[{name, hidden, permission: [{permission, pattern, action}]}]`. */
  async function agents(): Promise<Answer> {
    const got = await ask("agent.list", {})
    if (got.error) return got
    return {
      data: list(got.data)
        .map(record)
        .map(({ id, hidden, permissions }) => ({
          name: id,
          hidden,
          permission: list(permissions).map(oldRule),
        })),
    }
  }
  const toast = { error: { name: "Missing", message: "opencode 2 shows no toasts of a plugin" } }
  return {
    session,
    config: { providers },
    tui: { showToast: async (): Promise<Answer> => toast },
    app: { agents, log: async (): Promise<Answer> => ({}) },
    generate: callOf(context, "generate.text"),
  } as unknown as Client
}
