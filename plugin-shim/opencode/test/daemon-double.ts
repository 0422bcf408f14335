/** A small real daemon on a real Unix socket: the server side of design/protocol.md, as far as the shim sees it. */
import { mkdtempSync, rmSync } from "node:fs"
import http from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Json, Result, WireEvent } from "../src/wire.ts"

export class DaemonDouble {
  readonly folder = mkdtempSync(join(tmpdir(), "shim-"))
  readonly socket = join(this.folder, "d.sock")
  readonly hellos: Json[] = []
  readonly events: WireEvent[] = []
  readonly batches: number[] = []
  readonly results: (Result & { instance: string })[] = []
  readonly asks: Json[] = []
  readonly hosts = new Set<string | undefined>()
  /** Statuses to refuse the next event batches with. */
  refuse: number[] = []
  /** Batches of events are answered when this is done. */
  busy: Promise<unknown> = Promise.resolve()
  /** Kinds of event that are refused with 400 for good. */
  poison = ""
  state = { gate: false, gate_ms: 1000, context: false }
  answer: (ask: Json) => Promise<Json> = async () => ({})
  /** Called when a result has come, before it is answered. */
  onResult: () => void = () => {}
  #known = new Set<string>()
  #mark = new Map<string, number>()
  #streams = new Map<string, http.ServerResponse>()
  #server: http.Server | undefined

  async start(): Promise<this> {
    const server = http.createServer((request, response) => void this.#serve(request, response))
    this.#server = server
    await new Promise<void>((resolve) => server.listen(this.socket, resolve))
    return this
  }

  /** Die like a daemon: every connection is cut, every instance forgotten. */
  async stop(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    this.forget()
    for (const stream of this.#streams.values()) stream.end()
    this.#streams.clear()
    server?.closeAllConnections()
    await new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()))
  }

  async remove(): Promise<void> {
    await this.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** Answer 409 until hello is said again. */
  forget(): void {
    this.#known.clear()
  }

  order(order: Json): void {
    this.line(JSON.stringify({ api: 1, ...order }))
  }

  line(line: string): void {
    for (const stream of this.#streams.values()) stream.write(line + "\n")
  }

  get listening(): boolean {
    return this.#streams.size > 0
  }

  kinds(): string[] {
    return this.events.map((event) => event.kind)
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const reply = (status: number, body: Json) => {
      response.writeHead(status, { "content-type": "application/json" })
      response.end(JSON.stringify({ api: 1, ...body }))
    }
    this.hosts.add(request.headers.host)
    const url = new URL(request.url ?? "/", "http://reflectd")
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = JSON.parse(Buffer.concat(chunks).toString() || "{}") as Json & { instance: string }
    const instance = body.instance ?? url.searchParams.get("instance") ?? ""
    if (url.pathname === "/v1/hello") {
      this.#known.add(instance)
      this.hellos.push(body)
      return reply(200, { version: "0", pid: 1, state: this.state })
    }
    if (!this.#known.has(instance)) return reply(409, { error: "say hello first" })
    switch (url.pathname) {
      case "/v1/events":
        await this.busy
        return this.#take(instance, body["events"] as WireEvent[], reply)
      case "/v1/orders":
        response.writeHead(200)
        response.write("\n")
        this.#streams.set(instance, response)
        return
      case "/v1/results":
        this.results.push(body as unknown as Result & { instance: string })
        this.onResult()
        return reply(200, {})
      case "/v1/ask":
        this.asks.push(body)
        return reply(200, await this.answer(body))
      default:
        return reply(404, {})
    }
  }

  #take(instance: string, events: WireEvent[], reply: (status: number, body: Json) => void): void {
    const refusal = this.refuse.shift()
    if (refusal) return reply(refusal, { error: "no" })
    if (this.poison && events.some((event) => event.kind === this.poison)) return reply(400, { error: "no" })
    this.batches.push(events.length)
    for (const event of events) {
      if (event.seq <= (this.#mark.get(instance) ?? 0)) continue
      this.#mark.set(instance, event.seq)
      this.events.push(event)
    }
    reply(200, { seq: this.#mark.get(instance) ?? 0 })
  }
}

/** Wait until something holds. The patience is long: the machine may be busy with something else. */
export async function until(holds: () => boolean): Promise<void> {
  for (const end = Date.now() + 60_000; !holds();) {
    if (Date.now() > end) throw new Error(`never: ${holds}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
