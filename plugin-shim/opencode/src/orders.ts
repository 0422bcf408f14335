/**
 * The daemon's orders: an allow-list, each order id at most once, each with exactly one result. Nothing here
 * throws; what can't be done is answered `stale` or `failed` with the reason.
 */
import type { PluginInput } from "@opencode-ai/plugin"
import { BoundedMap } from "./bounded.ts"
import type { Judges } from "./judge.ts"
import { findTask, isEnough, projectMessages, projectTodos, sessionInfo } from "./project.ts"
import { sleep } from "./pump.ts"
import type { Tracker } from "./tracker.ts"
import { isRecord, JUDGE_TITLE, list, model, order as parse, reason, record, text } from "./wire.ts"
import type { Json, Order, Result } from "./wire.ts"

const LIMITS = [60, 240, 960, 3840, 15_360]
const MOST_MODELS = 5000
const LONGEST_ID = 200
const VARIANTS = ["info", "success", "warning", "error"] as const

type Outcome = Omit<Result, "id">

export class Orders {
  readonly #client: PluginInput["client"]
  readonly #tracker: Tracker
  readonly #judges: Judges
  readonly #answer: (result: Result) => void
  readonly #done = new BoundedMap<string, Result>(500)
  readonly #running = new Map<string, Promise<void>>()

  constructor(
    client: PluginInput["client"],
    tracker: Tracker,
    judges: Judges,
    answer: (result: Result) => void,
  ) {
    this.#client = client
    this.#tracker = tracker
    this.#judges = judges
    this.#answer = answer
  }

  /** Begin an order in this very tick. `busy`: feedback may be queued while the session still works. */
  accept(raw: unknown, busy = false): void {
    const order = parse(raw)
    if (!order || this.#running.has(order.id)) return
    const done = this.#done.get(order.id)
    if (done) return this.#answer(done)
    const running = this.#carryOut(order, busy)
      .catch((error: unknown): Outcome => ({ status: "failed", error: reason(error) }))
      .then((outcome) => {
        this.#running.delete(order.id)
        this.#finish(order, outcome)
      })
    this.#running.set(order.id, running)
  }

  /** Answer an order that was never begun. */
  refuse(order: Order, error: string): void {
    if (this.#running.has(order.id) || this.#done.has(order.id)) return
    // Not kept: the same id may come again for a later text of the same turn.
    this.#answer({ id: order.id, status: "stale", error })
  }

  /** Wait for the orders under way; after `ms` the judges are stopped. */
  async settle(ms: number): Promise<void> {
    const all = () => Promise.all(this.#running.values())
    await Promise.race([all(), sleep(ms)])
    if (this.#running.size === 0) return
    this.#judges.cancelAll()
    await Promise.race([all(), sleep(500)])
  }

  #finish(order: Order, outcome: Outcome): void {
    const result = { id: order.id, ...outcome }
    // What is read may be read again, and its data is large.
    if (order.kind !== "read" && order.kind !== "providers") this.#done.set(order.id, result)
    this.#answer(result)
  }

  async #carryOut(order: Order, busy: boolean): Promise<Outcome> {
    switch (order.kind) {
      case "toast":
        return this.#toast(order.data)
      case "feedback":
      case "nudge":
        return this.#prompt(order, busy)
      case "read":
        return { status: "done", data: await this.#read(order.session) }
      case "evaluate":
        return { status: "done", data: await this.#judges.evaluate(order) }
      case "cancel":
        this.#judges.cancel(text(order.data["order"]))
        return { status: "done" }
      case "delete":
        return this.#delete(list(order.data["sessions"]).map(text).filter(Boolean))
      case "providers":
        return { status: "done", data: await this.#providers() }
      default:
        return { status: "failed", error: `unknown order ${order.kind.slice(0, 50)}` }
    }
  }

  async #toast(data: Json): Promise<Outcome> {
    const variant = VARIANTS.find((known) => known === data["variant"]) ?? "info"
    const body = { title: text(data["title"]), message: text(data["message"]), variant }
    const shown = await this.#client.tui.showToast({ body })
    return shown.error ? { status: "failed", error: reason(shown.error) } : { status: "done" }
  }

  /** No `await` between the check and the call: what holds at the check holds at the call. */
  async #prompt(order: Order, busy: boolean): Promise<Outcome> {
    const { id, data, session, kind } = order
    if (!session || !order.if || !text(data["text"])) throw new Error(`${kind} needs session, if and text`)
    if (!busy && this.#tracker.peek(session)?.status === undefined) await this.#learnStatus(session)
    const objection = this.#tracker.objection(session, order.if, busy)
    if (objection) return { status: "stale", error: objection }
    const agent = text(data["agent"])
    const wanted = model(data["model"])
    const state = this.#tracker.session(session)
    state.prompted = Date.now()
    const sent = this.#client.session.promptAsync({
      path: { id: session },
      body: {
        parts: [{ type: "text", text: text(data["text"]), metadata: { reflectd: { order: id, kind } } }],
        ...(agent && { agent }),
        ...(wanted && { model: wanted }),
      },
    })
    const reply = await sent.catch((error: unknown) => ({ error }))
    if (!reply.error) return { status: "done" }
    state.prompted = 0
    return { status: "failed", error: reason(reply.error) }
  }

  /** Of a session that said nothing since this shim was loaded, the host must be asked. */
  async #learnStatus(session: string): Promise<void> {
    const all = await this.#client.session.status().catch(() => undefined)
    const type = text(record(record(all?.data)[session])["type"]) || "idle"
    const state = this.#tracker.session(session)
    if (type === "idle" || type === "busy" || type === "retry") state.status ??= type
  }

  async #read(id: string): Promise<Json> {
    const path = { id }
    const got = await this.#client.session.get({ path })
    if (!isRecord(got.data) || got.error) {
      if (got.response?.status !== 404) throw new Error(reason(got.error))
      return { missing: true, busy: false, session: sessionInfo({}, id), messages: [], todos: [] }
    }
    const messages = await this.#messages(id)
    const todos = await this.#client.session.todo({ path }).catch(() => undefined)
    if (this.#tracker.peek(id)?.status === undefined) await this.#learnStatus(id)
    return {
      missing: false,
      busy: this.#tracker.isBusy(id),
      session: sessionInfo(got.data, id),
      messages: projectMessages(messages),
      todos: projectTodos(todos?.data),
    }
  }

  /** Read further back until the task is covered; for the earlier tasks' texts only one step more. */
  async #messages(id: string): Promise<unknown[]> {
    for (const [step, limit] of LIMITS.entries()) {
      const messages = list((await this.#client.session.messages({ path: { id }, query: { limit } })).data)
      const task = findTask(messages)
      if (messages.length < limit || isEnough(task) || (task.covered && step > 0)) return messages
    }
    return list((await this.#client.session.messages({ path: { id } })).data)
  }

  /** The ids of what can be used, and nothing else: beside them the host's answer holds keys. */
  async #providers(): Promise<Json> {
    const got = await this.#client.config.providers()
    if (!isRecord(got.data) || got.error) throw new Error(reason(got.error))
    const fits = (id: string) => id !== "" && id.length <= LONGEST_ID
    const providers: { id: string; models: string[] }[] = []
    let left = MOST_MODELS
    for (const provider of list(got.data["providers"]).map(record)) {
      const id = text(provider["id"])
      if (!fits(id)) continue
      const models = Object.entries(record(provider["models"]))
        .filter(([model, about]) => fits(model) && record(about)["status"] !== "deprecated")
        .map(([model]) => model)
        .slice(0, left)
      left -= models.length
      if (models.length > 0) providers.push({ id, models })
    }
    return { providers }
  }

  /** Only what is a judge session by its title: never anybody's work. */
  async #delete(sessions: string[]): Promise<Outcome> {
    for (const id of sessions) {
      const { data } = await this.#client.session.get({ path: { id } })
      if (record(data)["title"] !== JUDGE_TITLE) continue
      this.#tracker.addJudge(id)
      await this.#client.session.delete({ path: { id } })
    }
    return { status: "done" }
  }
}
