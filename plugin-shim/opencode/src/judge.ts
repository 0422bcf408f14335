/**
 * Judge sessions. They have no tools, are announced to the daemon before they are prompted (I1), and are
 * always deleted (I37). Only here does the plugin ask a model.
 */
import type { PluginInput } from "@opencode-ai/plugin"
import { BoundedMap } from "./bounded.ts"
import type { Tracker } from "./tracker.ts"
import { JUDGE_AGENT, JUDGE_TITLE, model, number, reason, record, text } from "./wire.ts"
import type { Json, Order } from "./wire.ts"

const ANNOUNCE_MS = 30_000 // a busy daemon is no reason to give up a judgement
const MOST_MS = 600_000

/** The part of the connection that a judge needs. */
export interface Announcer {
  emit: (kind: string, data: Json) => number
  acknowledged: (seq: number, ms: number) => Promise<boolean>
}

/** The agent that judge sessions use: hidden, with no permissions. */
export const AGENT = {
  mode: "subagent",
  hidden: true,
  description: "internal to reflectd",
  prompt: "You are a strict judge.",
  temperature: 0,
  permission: { "*": "deny" },
}

export class Judges {
  readonly #client: PluginInput["client"]
  readonly #tracker: Tracker
  readonly #announcer: Announcer
  readonly #systems = new BoundedMap<string, string>(200)
  readonly #running = new Map<string, AbortController>()

  constructor(client: PluginInput["client"], tracker: Tracker, announcer: Announcer) {
    this.#client = client
    this.#tracker = tracker
    this.#announcer = announcer
  }

  /** The system text of a judge session; undefined for any other session. */
  system(sessionID: string): string | undefined {
    return this.#systems.get(sessionID) ?? (this.#tracker.isJudge(sessionID) ? AGENT.prompt : undefined)
  }

  /** Stop the evaluation that `order` started; the session is deleted by the evaluation itself. */
  cancel(order: string): void {
    this.#running.get(order)?.abort(new Error("cancelled"))
  }

  cancelAll(): void {
    for (const order of this.#running.keys()) this.cancel(order)
  }

  /** Run one evaluation and return its result data; throws with the reason when it fails. */
  async evaluate(order: Order): Promise<Json> {
    const control = new AbortController()
    this.#running.set(order.id, control)
    const ms = Math.min(number(order.data["timeout_ms"]) ?? 60_000, MOST_MS)
    const timer = setTimeout(() => control.abort(new Error(`no answer in ${ms} ms`)), ms)
    timer.unref()
    try {
      return await this.answer(order, control.signal)
    } finally {
      clearTimeout(timer)
      this.#running.delete(order.id)
    }
  }

  /** Ask the model in a session of its own. When the signal fires, the promise fails with its reason. */
  protected async answer(order: Order, signal: AbortSignal): Promise<Json> {
    const created = await this.#client.session.create({ body: { title: JUDGE_TITLE } })
    const id = text(record(created.data)["id"])
    if (!id) throw new Error(`no judge session: ${reason(created.error)}`)
    try {
      return await this.#judge(id, order, signal)
    } finally {
      await this.#remove(id, signal.aborted)
    }
  }

  async #judge(id: string, order: Order, signal: AbortSignal): Promise<Json> {
    this.#tracker.addJudge(id)
    this.#systems.set(id, text(order.data["system"]))
    const seq = this.#announcer.emit("judge.created", { sessionID: id })
    if (!(await this.#announcer.acknowledged(seq, ANNOUNCE_MS)))
      throw new Error("the judge session could not be announced")
    signal.throwIfAborted()
    const wanted = model(order.data["model"])
    const asked = this.#client.session.prompt({
      path: { id },
      body: {
        agent: JUDGE_AGENT,
        tools: { "*": false },
        parts: [{ type: "text", text: text(order.data["text"]) }],
        ...(wanted && { model: wanted }),
      },
    })
    const answer = await orAborted(asked, signal)
    const info = record(record(answer.data)["info"])
    const failure = answer.error ?? info["error"]
    if (failure) throw new Error(reason(failure))
    return { ...answerOf(record(answer.data)["parts"]), session: id, ...costOf(info) }
  }

  async #remove(id: string, aborted: boolean): Promise<void> {
    const path = { id }
    if (aborted) await this.#client.session.abort({ path }).catch(() => {})
    await this.#client.session.delete({ path }).catch(() => {})
    this.#systems.delete(id)
  }
}

/** The promise's result, or the signal's reason as soon as it fires; then the promise is ignored. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason as Error)
    signal.addEventListener("abort", stop, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop))
  })
}

function answerOf(parts: unknown): { text: string } {
  const said = (Array.isArray(parts) ? parts : []).map(record).filter((part) => part["type"] === "text")
  return { text: said.map((part) => text(part["text"])).join("") }
}

/** All tokens that were paid for: opencode counts cached input and thinking apart from `input` and `output`. */
function costOf(info: Json): Json {
  const used = model(info)
  const tokens = record(info["tokens"])
  const cache = record(tokens["cache"])
  const input = sum(tokens["input"], cache["read"], cache["write"])
  const output = sum(tokens["output"], tokens["reasoning"])
  const cost = number(info["cost"])
  return {
    ...(used && { model: used }),
    ...(input !== undefined && output !== undefined && { tokens: { input, output } }),
    ...(cost !== undefined && { cost }),
  }
}

/** The sum, undefined when the first is no number; of the others only numbers count. */
function sum(first: unknown, ...more: unknown[]): number | undefined {
  const known = number(first)
  return known === undefined ? undefined : more.reduce<number>((all, one) => all + (number(one) ?? 0), known)
}
