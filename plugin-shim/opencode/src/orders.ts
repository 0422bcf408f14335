/**
 * Carries out the daemon's orders: known kinds only, each order id at most once, each with exactly one
 * result. Nothing here throws; an order that can't be carried out is answered `stale` or `failed`, with the
 * reason.
 */
import type { PluginInput } from "@opencode-ai/plugin"
import { BoundedMap } from "./bounded.ts"
import type { Contexts } from "./context.ts"
import { History } from "./history.ts"
import type { Judges } from "./judge.ts"
import {
  findTask,
  isEnough,
  isHumanMessage,
  isUndone,
  mayChangeNothing,
  projectMessages,
  projectWhole,
  projectTodos,
  sessionInfo,
  wishOf,
} from "./project.ts"
import { sleep } from "./pump.ts"
import type { Tracker } from "./tracker.ts"
import { isRecord, JUDGE_TITLE, list, model, number, order as parse, reason, record, text } from "./wire.ts"
import type { Json, Order, Result } from "./wire.ts"

const LIMITS = [60, 240, 960, 3840, 15_360]
const MOST_MODELS = 5000
const LONGEST_ID = 200
const READS = new Set(["read", "providers", "history"])
const PAGE = 20
export const TOAST_MS = 10_000 // opencode's own five seconds are over before a person looks up
const VARIANTS = ["info", "success", "warning", "error"] as const

type Outcome = Omit<Result, "id">

export class Orders {
  readonly #client: PluginInput["client"]
  readonly #tracker: Tracker
  readonly #judges: Judges
  readonly #contexts: Pick<Contexts, "renew">
  readonly #history: History
  readonly #answer: (result: Result) => void
  readonly #done = new BoundedMap<string, Result>(500)
  readonly #running = new Map<string, Promise<void>>()

  constructor(
    client: PluginInput["client"],
    tracker: Tracker,
    judges: Judges,
    contexts: Pick<Contexts, "renew">,
    answer: (result: Result) => void,
  ) {
    this.#client = client
    this.#tracker = tracker
    this.#judges = judges
    this.#contexts = contexts
    this.#history = new History(client)
    this.#answer = answer
  }

  /** Begin an order at once, in the same tick. `busy`: feedback may be queued while the agent still works. */
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
    // The result is not kept: the same id may come again for a later text of the same turn.
    this.#answer({ id: order.id, status: "stale", error })
  }

  /** Wait for the running orders; after `ms` stop the judges. */
  async settle(ms: number): Promise<void> {
    const all = () => Promise.all(this.#running.values())
    await Promise.race([all(), sleep(ms)])
    if (this.#running.size === 0) return
    this.#judges.cancelAll()
    await Promise.race([all(), sleep(500)])
  }

  #finish(order: Order, outcome: Outcome): void {
    const result = { id: order.id, ...outcome }
    // A repeated read is carried out again, because its data is too large to keep.
    if (!READS.has(order.kind)) this.#done.set(order.id, result)
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
        return { status: "done", data: await this.#read(order.session, order.data["whole"] === true) }
      case "evaluate":
        return { status: "done", data: await this.#judges.evaluate(order) }
      case "cancel":
        this.#judges.cancel(text(order.data["order"]))
        return { status: "done" }
      case "renew":
        this.#contexts.renew(order.session)
        return { status: "done" }
      case "delete":
        return this.#delete(list(order.data["sessions"]).map(text).filter(Boolean))
      case "providers":
        return { status: "done", data: await this.#providers() }
      case "history": {
        const { after, limit, listed } = order.data
        const page = this.#history.page(text(after), number(limit) ?? PAGE, listed === true)
        return { status: "done", data: await page }
      }
      default:
        return { status: "failed", error: `unknown order ${order.kind.slice(0, 50)}` }
    }
  }

  async #toast(data: Json): Promise<Outcome> {
    const variant = VARIANTS.find((known) => known === data["variant"]) ?? "info"
    const body = { title: text(data["title"]), message: text(data["message"]), variant, duration: TOAST_MS }
    const shown = await this.#client.tui.showToast({ body })
    return shown.error ? { status: "failed", error: reason(shown.error) } : { status: "done" }
  }

  /** There is no `await` between the check and the call, so that nothing can change between them. */
  async #prompt(order: Order, busy: boolean): Promise<Outcome> {
    const { id, data, session, kind } = order
    if (!session || !order.if || !text(data["text"])) throw new Error(`${kind} needs session, if and text`)
    if (!busy) await this.#look(session, order.if.task)
    if (!busy) await this.#tracker.typed(session)
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
        ...state.wish,
      },
    })
    const reply = await sent.catch((error: unknown) => ({ error }))
    if (!reply.error) return { status: "done" }
    state.prompted = 0
    return { status: "failed", error: reason(reply.error) }
  }

  /** Ask the host what its events need not have told yet: that messages were taken back, how it was asked. */
  async #look(session: string, task: string): Promise<void> {
    if (this.#tracker.peek(session)?.status === undefined) await this.#learnStatus(session)
    const { data } = await this.#client.session.get({ path: { id: session } })
    const state = this.#tracker.session(session)
    state.undone = isUndone(data)
    if (state.human || !task) return
    // This plugin was loaded after the person typed.
    const asked = await this.#client.session.message({ path: { id: session, messageID: task } })
    state.wish = wishOf(record(asked.data)["info"])
  }

  /** Ask the host for the status of a session that had no event since this plugin was loaded. */
  async #learnStatus(session: string): Promise<void> {
    const all = await this.#client.session.status().catch(() => undefined)
    const type = text(record(record(all?.data)[session])["type"]) || "idle"
    const state = this.#tracker.session(session)
    if (type === "idle" || type === "busy" || type === "retry") state.status ??= type
  }

  /** `whole`: every message in full, for a back-test. */
  async #read(id: string, whole: boolean): Promise<Json> {
    const path = { id }
    const got = await this.#client.session.get({ path })
    if (!isRecord(got.data) || got.error) {
      if (got.response?.status !== 404) throw new Error(reason(got.error))
      return { missing: true, busy: false, session: sessionInfo({}, id), messages: [], todos: [] }
    }
    const messages = await (whole ? this.#all(id) : this.#messages(id))
    const todos = await this.#client.session.todo({ path }).catch(() => undefined)
    const readonly = await this.#isReadOnly(messages)
    if (this.#tracker.peek(id)?.status === undefined) await this.#learnStatus(id)
    return {
      missing: false,
      ...(isUndone(got.data) && { undone: true }),
      ...(readonly && { readonly }),
      busy: this.#tracker.isBusy(id),
      session: sessionInfo(got.data, id),
      ...(whole && { whole }),
      messages: whole ? projectWhole(messages) : projectMessages(messages, this.#steers),
      todos: projectTodos(todos?.data),
    }
  }

  /** Whether the agent of the last human message may neither edit files nor run commands. */
  async #isReadOnly(messages: unknown[]): Promise<boolean> {
    const asked = record(record(messages.findLast(isHumanMessage))["info"])
    const agents = await this.#client.app.agents().catch(() => undefined)
    const agent = list(agents?.data)
      .map(record)
      .find((one) => one["name"] === asked["agent"])
    return mayChangeNothing(agent?.["permission"], wishOf(asked).tools)
  }

  /** Read further back until the whole task is there; for earlier requests read at most one step more. */
  async #messages(id: string): Promise<unknown[]> {
    for (const [step, limit] of LIMITS.entries()) {
      const messages = list((await this.#client.session.messages({ path: { id }, query: { limit } })).data)
      const task = findTask(messages, this.#steers)
      if (messages.length < limit || isEnough(task) || (task.covered && step > 0)) return messages
    }
    return this.#all(id)
  }

  readonly #steers = (id: string) => this.#tracker.steers.has(id)

  async #all(id: string): Promise<unknown[]> {
    return list((await this.#client.session.messages({ path: { id } })).data)
  }

  /** Only the ids of providers and models, because the rest of the host's answer holds keys. */
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

  /** Delete only sessions with the title of a judge session, never a person's work. */
  async #delete(sessions: string[]): Promise<Outcome> {
    for (const id of sessions) {
      const { data } = await this.#client.session.get({ path: { id } })
      if (record(data)["title"] !== JUDGE_TITLE) continue
      this.#tracker.addJudge(id)
      await this.#client.session.abort({ path: { id } }) // its model call would go on, and be paid for
      await this.#client.session.delete({ path: { id } })
    }
    return { status: "done" }
  }
}
