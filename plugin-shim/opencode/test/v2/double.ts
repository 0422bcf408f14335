/**
 * A context of opencode 2: our own types, a queue of events, and calls that are written down. The recording in
 * `events.jsonl` was made by us on a preview of version 2, with the names that version 2.0.26 has; the lines with
 * `synthesized` are events that only the newer version sends.
 */
import { readFileSync } from "node:fs"
import type { Calls } from "../../src/v2/calls.ts"
import type { Json } from "../../src/wire.ts"

export type Event = { id: string; type: string; data: Json } & Json

const lines = readFileSync(new URL("./events.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n")
const recorded = lines.map((line) => JSON.parse(line) as { case: string; event: Event })

/** The recorded events of one case, or of all. */
export const events = (name?: string): Event[] =>
  structuredClone(recorded.filter((line) => !name || line.case === name).map((line) => line.event))
export const CASES = [...new Set(recorded.map((line) => line.case))]

/** The session that a person works in, and the one of its sub-agent. */
export const WORK = "ses_dfd2e312cffe33s1CIuuYu8csf"
export const CHILD = "ses_dfd2e13a5ffe0A8xLX9jegC8M7"

export class ContextDouble {
  readonly calls: { name: string; input: Json }[] = []
  onCall: (name: string, input: Json) => void = () => {}
  readonly sessions = new Map<string, Json>()
  readonly messages = new Map<string, Json[]>()
  /** What a call does instead of what the double does. */
  readonly instead: Partial<Calls> = {}
  readonly location: { directory: string }
  readonly hooks = new Map<string, (event: unknown) => void | Promise<void>>()
  streams = 0
  #waiting: (() => void)[] = []
  #queue: (Event | "end" | Error)[] = []
  #ids = 0

  /** `lacks`: the calls that this version does not have. */
  constructor(directory: string, lacks: (keyof Calls)[] = []) {
    this.location = { directory }
    this.sessions.set(WORK, { id: WORK, title: "Work", location: { directory } })
    this.sessions.set(CHILD, { id: CHILD, title: "Child", parentID: WORK, location: { directory } })
    const all: Calls = {
      "event.subscribe": ({ signal }) => this.#stream(signal),
      "session.get": async ({ sessionID }) => this.#found(sessionID),
      "session.context": async ({ sessionID }) => {
        this.#found(sessionID)
        return this.messages.get(sessionID) ?? []
      },
      "session.synthetic": async () => ({}),
      "session.create": async ({ title }) => {
        const id = `ses_made${++this.#ids}`
        this.sessions.set(id, { id, title, location: this.location })
        return this.#found(id)
      },
      "session.switchModel": async () => ({}),
      "session.prompt": async ({ sessionID }) => {
        const content = [{ type: "text", id: "t", text: "verdict" }]
        this.messages.set(sessionID, [{ type: "assistant", id: "msg_a", content, finish: "stop" }])
      },
      "session.wait": async () => ({}),
      "session.interrupt": async () => ({}),
      "session.remove": async ({ sessionID }) => this.sessions.delete(sessionID),
      "session.hook": async (name, hook) => this.hooks.set(name, hook),
      "generate.text": async () => ({ text: "verdict" }),
      "agent.list": async () => [
        {
          id: "plan",
          permissions: ["edit", "shell"].map((action) => ({ action, resource: "*", effect: "deny" })),
        },
        { id: "build", permissions: [{ action: "*", resource: "*", effect: "allow" }] },
        { id: "title", hidden: true, permissions: [] },
      ],
      "model.list": async () => [
        { providerID: "fake", id: "fake-1", status: "active" },
        { providerID: "fake", id: "old", status: "deprecated" },
        { providerID: "other", id: "big", status: "beta" },
      ],
    }
    for (const name of Object.keys(all) as (keyof Calls)[]) {
      if (lacks.includes(name)) continue
      const [domain = "", method = ""] = name.split(".")
      const groups = this as unknown as Record<string, Json>
      groups[domain] ??= {}
      ;(groups[domain] as Json)[method] = (...args: unknown[]) => {
        if (name !== "event.subscribe") this.calls.push({ name, input: args[0] as Json })
        this.onCall(name, args[0] as Json)
        return ((this.instead[name] ?? all[name]) as (...args: unknown[]) => unknown)(...args)
      }
    }
  }

  /** A request to the model, as far as the hook `context` sees it: its system texts after the hook. */
  async request(sessionID: string, agent = "build"): Promise<string[]> {
    const event = {
      sessionID,
      agent,
      system: [{ type: "text", text: "You are opencode." }],
      tools: {},
    }
    await this.hooks.get("context")?.(event)
    return event.system.map(({ text }) => text)
  }

  named(name: keyof Calls): Json[] {
    return this.calls.filter((call) => call.name === name).map((call) => call.input)
  }

  /** The host says these; `end` ends its stream, an error breaks it. */
  say(...said: (Event | "end" | Error)[]): void {
    this.#queue.push(...said)
    for (const wake of this.#waiting.splice(0)) wake()
  }

  #found(id: string): Json {
    const found = this.sessions.get(id)
    if (!found) throw Object.assign(new Error("no such session"), { _tag: "SessionNotFoundError" })
    return found
  }

  async *#stream(signal: AbortSignal): AsyncGenerator<unknown> {
    this.streams++
    while (!signal.aborted) {
      const next = this.#queue.shift()
      if (next === "end") return
      if (next instanceof Error) throw next
      if (next !== undefined) yield next
      else
        await new Promise<void>((resolve) => {
          this.#waiting.push(resolve)
          signal.addEventListener("abort", () => resolve(), { once: true })
        })
    }
  }
}
