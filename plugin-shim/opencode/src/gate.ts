/**
 * The gate of `opencode run`, which exits when the agent is idle, so feedback must be queued before that
 * (I38). When a text is complete, the gate asks the daemon for feedback. It keeps that order until the step
 * ends and carries it out if the step ends the turn; otherwise it answers `stale`. Without an answer the run
 * just ends.
 *
 * On Anthropic's wire a text is complete before the calls that follow it. While the host waits here, it still reads
 * the stream, and announces a call that comes. So a text is a question only when no call has followed for a moment,
 * and none any more when one does. What is waited for texts that no call followed counts against one time for all
 * texts, until the agent is sent back.
 */
import { BoundedMap } from "./bounded.ts"
import type { Link } from "./link.ts"
import type { Orders } from "./orders.ts"
import { cut } from "./project.ts"
import { pause } from "./pump.ts"
import type { Tracker } from "./tracker.ts"
import { order as parse, record, text } from "./wire.ts"
import type { Order } from "./wire.ts"

const CATCH_UP_MS = 1000
const TEXT = { head: 2048, tail: 14_336 }
const MOMENT_MS = 1000

export class Gate {
  readonly #link: Pick<Link, "ask" | "connected" | "flushed" | "state">
  readonly #orders: Pick<Orders, "accept" | "refuse">
  readonly #tracker: Tracker
  readonly #pending = new Map<string, { order: Order; messageID: string }>()
  /** What to do when a session calls a tool while the host waits here. */
  readonly #calls = new Map<string, () => void>()
  /** How long was waited in vain, since the session was last sent back. */
  readonly #waited = new BoundedMap<string, number>(1000)
  readonly #moment: number

  constructor(
    link: Pick<Link, "ask" | "connected" | "flushed" | "state">,
    orders: Pick<Orders, "accept" | "refuse">,
    tracker: Tracker,
    moment = MOMENT_MS,
  ) {
    this.#moment = moment
    this.#link = link
    this.#orders = orders
    this.#tracker = tracker
  }

  /** The host waits for this after each text part, also in the middle of a turn. */
  async textComplete(sessionID: string, messageID: string, said: string): Promise<void> {
    this.#drop(sessionID, "another text followed")
    const session = this.#tracker.peek(sessionID)
    if (!this.#link.connected || !this.#link.state.gate || !said.trim()) return
    if (this.#tracker.isJudge(sessionID) || this.#tracker.isChild(sessionID) || session?.summary) return
    const call = new Promise<"call">((resolve) => this.#calls.set(sessionID, () => resolve("call")))
    try {
      if ((await Promise.race([call, pause(this.#moment)])) === "call") return
      await this.#ask(sessionID, messageID, said, call)
    } finally {
      this.#calls.delete(sessionID)
    }
  }

  /** A tool is called: the text that the host waits for did not end the turn. */
  called(sessionID: string): void {
    this.#calls.get(sessionID)?.()
  }

  async #ask(sessionID: string, messageID: string, said: string, call: Promise<"call">): Promise<void> {
    const before = this.#waited.get(sessionID) ?? 0
    const left = this.#link.state.gate_ms - before
    if (left <= 0) return
    // The daemon must know the task before it is asked about its end.
    if (!(await this.#link.flushed(CATCH_UP_MS))) return
    const data = { sessionID, messageID, text: cut(said, TEXT).text }
    const began = Date.now()
    const answer = await Promise.race([call, this.#link.ask("gate", data, left)])
    if (answer === "call") {
      void this.#link.ask("gate", { ...data, text: "" }, CATCH_UP_MS)
      return
    }
    this.#waited.set(sessionID, before + Date.now() - began)
    const order = parse(answer?.["feedback"])
    if (!order) return
    if (order.kind !== "feedback" || order.session !== sessionID)
      this.#orders.refuse(order, "not for this turn")
    else this.#pending.set(sessionID, { order, messageID })
  }

  /** Look at every event of the host, after the tracker. */
  see(event: unknown): void {
    if (this.#pending.size === 0) return
    const { type, properties } = record(event)
    const { part, sessionID: id, info } = record(properties)
    const sessionID = text(id) || text(record(part)["sessionID"]) || text(record(info)["sessionID"])
    const pending = this.#pending.get(sessionID)
    if (!pending) return
    switch (type) {
      case "message.part.updated":
        if (text(record(part)["messageID"]) === pending.messageID) this.#partOf(pending.order, record(part))
        break
      case "session.error":
      case "session.idle":
      case "session.deleted":
        this.#drop(sessionID, `${type} before the turn ended`)
    }
  }

  /** A user message came in: the order that is kept was for the turn before it. */
  heard(sessionID: string): void {
    this.#drop(sessionID, "a newer human message")
  }

  close(): void {
    for (const sessionID of [...this.#pending.keys()]) this.#drop(sessionID, "the run ended")
  }

  #partOf(order: Order, part: Record<string, unknown>): void {
    if (part["type"] === "tool") this.#drop(order.session, "a tool call followed")
    if (part["type"] !== "step-finish") return
    if (part["reason"] !== "stop") return this.#drop(order.session, "the step did not end the turn")
    this.#pending.delete(order.session)
    this.#waited.delete(order.session)
    this.#orders.accept(order, true)
  }

  #drop(sessionID: string, why: string): void {
    const pending = this.#pending.get(sessionID)
    if (!pending) return
    this.#pending.delete(sessionID)
    this.#orders.refuse(pending.order, why)
  }
}
