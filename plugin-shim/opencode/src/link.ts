/**
 * The connection to the daemon: it says hello, reads the order stream, sends events and results, asks
 * questions. It works in the background, and the host never waits for it. What fails is tried again, after
 * growing waits, until `close`.
 */
import { randomUUID } from "node:crypto"
import { BoundedMap } from "./bounded.ts"
import { EventBuffer } from "./buffer.ts"
import { lines, post, Refused } from "./http.ts"
import { Pump, sleep } from "./pump.ts"
import { API, number, record } from "./wire.ts"
import type { Hello, HookState, Json, Result } from "./wire.ts"

const BATCH = 500
const REQUEST_MS = 5000
const SILENCE_MS = 45_000
const RETRY_MS = { first: 250, most: 10_000 }

export interface LinkOptions {
  hello: Hello
  socket: () => string
  onOrder: (order: unknown) => void
  /** Called when connecting failed: the daemon may have to be started. */
  onDown?: (error: unknown) => void
  log?: (message: string) => void
  buffer?: number
}

export class Link {
  readonly instance = `${process.pid}-${randomUUID().slice(0, 8)}`
  readonly #options: LinkOptions
  readonly #events: EventBuffer
  readonly #results = new BoundedMap<string, Result>(500)
  readonly #closing = new AbortController()
  readonly #eventPump: Pump
  readonly #resultPump: Pump
  #waiting: { seq: number; resolve: (acked: boolean) => void }[] = []
  #state: HookState = { gate: false, gate_ms: 20_000, context: false }
  #connected = false
  #most = BATCH
  #greeting: Promise<void> | undefined

  constructor(options: LinkOptions) {
    this.#options = options
    this.#events = new EventBuffer(options.buffer)
    const onError = (error: unknown) => this.#recover(error)
    this.#eventPump = new Pump(() => this.#connected && this.#sendEvents(), onError)
    this.#resultPump = new Pump(() => this.#connected && this.#sendResult(), onError)
  }

  get connected(): boolean {
    return this.#connected
  }

  get state(): HookState {
    return this.#state
  }

  get dropped(): number {
    return this.#events.dropped
  }

  /** Begin connecting; returns at once. */
  open(): void {
    void this.#live()
  }

  /** Queue an event. It is synchronous, so events keep the host's order. */
  emit(kind: string, data: Json): number {
    const seq = this.#events.push(kind, data)
    this.#eventPump.kick()
    return seq
  }

  /** Whether the daemon has stored everything up to `seq`, waiting at most `ms`. */
  acknowledged(seq: number, ms: number): Promise<boolean> {
    const [oldest] = this.#events.batch(1)
    if (!oldest || oldest.seq > seq) return Promise.resolve(true)
    return new Promise((resolve) => {
      const waiter = { seq, resolve }
      this.#waiting.push(waiter)
      setTimeout(() => {
        this.#waiting = this.#waiting.filter((other) => other !== waiter)
        resolve(false)
      }, ms).unref()
    })
  }

  flushed(ms: number): Promise<boolean> {
    return this.#connected ? this.acknowledged(this.#events.lastSeq, ms) : Promise.resolve(false)
  }

  result(result: Result): void {
    // A copy, so that a result which is repeated while its first report is on the way is reported again.
    this.#results.set(result.id, { ...result })
    this.#resultPump.kick()
  }

  /** Wait until the daemon has accepted every result, at most `ms`. */
  async answered(ms: number): Promise<void> {
    const end = Date.now() + ms
    while (this.#connected && this.#results.size > 0 && Date.now() < end) await sleep(10)
  }

  /** A question whose answer a hook waits for. Null without a connection or without an answer in time. */
  async ask(what: string, data: Json, ms: number): Promise<Json | null> {
    if (!this.#connected) return null
    const body = { instance: this.instance, what, data }
    try {
      return record(await post(this.#options.socket(), "/v1/ask", body, ms))
    } catch (error) {
      this.#options.log?.(`ask ${what}: ${error}`)
      return null
    }
  }

  close(): void {
    this.#connected = false
    this.#closing.abort()
  }

  async #live(): Promise<void> {
    const { signal } = this.#closing
    const stream = `/v1/orders?instance=${encodeURIComponent(this.instance)}`
    for (let wait = RETRY_MS.first; !signal.aborted; wait = Math.min(wait * 2, RETRY_MS.most)) {
      try {
        await this.#hello()
        await lines(this.#options.socket(), stream, SILENCE_MS, signal, (line) => {
          wait = RETRY_MS.first / 2
          this.#receive(line)
        })
      } catch (error) {
        if (!signal.aborted) this.#options.onDown?.(error)
      }
      this.#connected = false
      await sleep(wait * (1 + Math.random() / 4), signal)
    }
  }

  #hello(): Promise<void> {
    this.#greeting ??= this.#greet().finally(() => (this.#greeting = undefined))
    return this.#greeting
  }

  async #greet(): Promise<void> {
    const body = { api: API, instance: this.instance, ...this.#options.hello }
    const reply = record(await post(this.#options.socket(), "/v1/hello", body, REQUEST_MS))
    const state = record(reply["state"])
    const [lessons, late] = [number(state["lessons"]), number(state["late_lessons"])]
    this.#state = {
      gate: state["gate"] === true,
      gate_ms: number(state["gate_ms"]) ?? 20_000,
      context: state["context"] === true,
      ...(lessons !== undefined && { lessons }),
      ...(late !== undefined && { late_lessons: late }),
    }
    if (this.#closing.signal.aborted) return
    this.#connected = true
    this.#eventPump.kick()
    this.#resultPump.kick()
  }

  #receive(line: string): void {
    try {
      this.#options.onOrder(JSON.parse(line))
    } catch (error) {
      this.#options.log?.(`order: ${error}`)
    }
  }

  async #sendEvents(): Promise<boolean> {
    const events = this.#events.batch(this.#most)
    const first = events[0]
    if (!first) return false
    const body = { instance: this.instance, events }
    try {
      const reply = record(await post(this.#options.socket(), "/v1/events", body, REQUEST_MS))
      const stored = number(reply["seq"]) ?? 0
      if (stored < first.seq) throw new Error(`reflectd stored up to ${stored}, not ${first.seq}`)
      this.#events.acknowledge(stored)
      this.#most = BATCH
    } catch (error) {
      if (!(error instanceof Refused) || (error.status !== 400 && error.status !== 413)) throw error
      // The daemon refuses one event of the batch: halve the batch until that event is alone, then drop it.
      if (events.length === 1) this.#giveUp(first.seq)
      else this.#most = Math.ceil(events.length / 2)
      this.#options.log?.(error.message)
    }
    this.#wake()
    return this.#events.size > 0
  }

  async #sendResult(): Promise<boolean> {
    const result = this.#results.values().next().value
    if (!result) return false
    try {
      await post(this.#options.socket(), "/v1/results", { instance: this.instance, ...result }, REQUEST_MS)
    } catch (error) {
      const final = error instanceof Refused && error.status !== 409 && error.status < 500
      if (!final) throw error
      this.#options.log?.(error.message)
      if (error.status === 413 && result.data) {
        this.#results.set(result.id, { id: result.id, status: "failed", error: "result too large" })
        return true
      }
    }
    if (this.#results.get(result.id) === result) this.#results.delete(result.id)
    return this.#results.size > 0
  }

  #giveUp(seq: number): void {
    this.#events.discardOldest()
    for (const waiter of this.#waiting) if (waiter.seq === seq) waiter.resolve(false)
  }

  #wake(): void {
    const oldest = this.#events.batch(1)[0]?.seq ?? Infinity
    const ready = this.#waiting.filter((waiter) => waiter.seq < oldest)
    this.#waiting = this.#waiting.filter((waiter) => waiter.seq >= oldest)
    for (const waiter of ready) waiter.resolve(true)
  }

  /** A restarted daemon does not know this instance: say hello, then the pump repeats its step. */
  async #recover(error: unknown): Promise<boolean> {
    if (!(error instanceof Refused) || error.status !== 409) return false
    await this.#hello()
    return true
  }
}
