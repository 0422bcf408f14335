/**
 * Events that the daemon has not acknowledged yet, oldest first. Each event gets its `seq` here, once, so
 * that the daemon recognises a batch that is sent again (I35). A full buffer drops `activity` first, then the
 * oldest.
 */
import type { Json, WireEvent } from "./wire.ts"

export class EventBuffer {
  readonly #limit: number
  #events: WireEvent[] = []
  #activities = 0
  #seq = 0
  #dropped = 0

  constructor(limit = 5000) {
    this.#limit = limit
  }

  get size(): number {
    return this.#events.length
  }

  get lastSeq(): number {
    return this.#seq
  }

  /** How many events were dropped before the daemon took them. */
  get dropped(): number {
    return this.#dropped
  }

  push(kind: string, data: Json, t = Date.now()): number {
    this.#events.push({ seq: ++this.#seq, t, kind, data })
    if (kind === "activity") this.#activities++
    if (this.#events.length > this.#limit) this.#makeRoom()
    return this.#seq
  }

  batch(most: number): WireEvent[] {
    return this.#events.slice(0, most)
  }

  /** Forget all events up to `seq`; returns how many those were. */
  acknowledge(seq: number): number {
    const before = this.#events.length
    const rest = this.#events.findIndex((event) => event.seq > seq)
    const gone = this.#events.splice(0, rest < 0 ? before : rest)
    this.#activities -= gone.filter((event) => event.kind === "activity").length
    return gone.length
  }

  /** Drop the oldest event, because the daemon will never accept it. */
  discardOldest(): void {
    this.#remove(0)
  }

  #makeRoom(): void {
    const at = this.#activities > 0 ? this.#events.findIndex((event) => event.kind === "activity") : 0
    this.#remove(Math.max(0, at))
  }

  #remove(at: number): void {
    const [event] = this.#events.splice(at, 1)
    if (!event) return
    if (event.kind === "activity") this.#activities--
    this.#dropped++
  }
}
