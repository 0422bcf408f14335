import assert from "node:assert/strict"
import { afterEach, beforeEach, test } from "node:test"
import { writeFileSync } from "node:fs"
import { isAbsent } from "../src/daemon.ts"
import { post } from "../src/http.ts"
import { Link } from "../src/link.ts"
import type { Hello } from "../src/wire.ts"
import { DaemonDouble, until } from "./daemon-double.ts"

const HELLO: Hello = { host: "opencode", mode: "serve", pid: 1, directory: "/p" }

let daemon: DaemonDouble
let link: Link
let orders: unknown[]
let downs: unknown[]

beforeEach(() => {
  daemon = new DaemonDouble()
  orders = []
  downs = []
  link = new Link({
    hello: HELLO,
    socket: () => daemon.socket,
    onOrder: (order) => orders.push(order),
    onDown: (error) => downs.push(error),
  })
})

afterEach(async () => {
  link.close()
  await daemon.remove()
})

const emitMany = (n: number) => {
  for (let i = 0; i < n; i++) link.emit("session.idle", { i })
}
const inOrder = (n: number) =>
  assert.deepEqual(
    daemon.events.map((event) => event.seq),
    Array.from({ length: n }, (_, i) => i + 1),
  )

test("says hello, takes orders, sends events and results, under the name reflectd", async () => {
  await daemon.start()
  link.open()
  await until(() => daemon.listening)
  assert.deepEqual(daemon.hellos[0], { api: 1, instance: link.instance, ...HELLO })
  daemon.order({ id: "o1", kind: "toast", session: "s", data: {} })
  await until(() => orders.length === 1)
  link.result({ id: "o1", status: "done" })
  link.emit("session.idle", { sessionID: "s" })
  await until(() => daemon.results.length === 1 && daemon.events.length === 1)
  assert.deepEqual(daemon.results[0], { instance: link.instance, id: "o1", status: "done" })
  assert.deepEqual([...daemon.hosts], ["reflectd"])
})

// shows: I42
test("a result that is repeated before the daemon answered its first report is reported again", async () => {
  await daemon.start()
  link.open()
  await until(() => daemon.listening)
  const done = { id: "o1", status: "done" } as const
  daemon.onResult = () => {
    daemon.onResult = () => {}
    link.result(done)
  }
  link.result(done)
  await until(() => daemon.results.length === 2)
})

// shows: I35
test("with no daemon nothing waits, and what was buffered is replayed in order when one comes", async () => {
  link.open()
  emitMany(1200)
  assert.equal(await link.ask("gate", {}, 5000), null)
  assert.equal(await link.flushed(5000), false)
  await until(() => downs.length > 0)
  assert.ok(isAbsent(downs[0]), `not recognised as absent: ${downs[0]}`)
  await daemon.start()
  await until(() => daemon.events.length === 1200)
  inOrder(1200)
  assert.ok(Math.max(...daemon.batches) <= 500)
})

// shows: I35
test("a daemon that restarts gets the rest, without gaps or doubles", async () => {
  await daemon.start()
  link.open()
  emitMany(3)
  await until(() => daemon.events.length === 3)
  await daemon.stop()
  emitMany(3)
  link.result({ id: "late", status: "done" })
  await daemon.start()
  await until(() => daemon.events.length === 6 && daemon.results.length === 1)
  inOrder(6)
  assert.equal(daemon.hellos.length, 2)
  assert.equal(daemon.hellos[1]?.["instance"], link.instance)
})

test("409 is answered by hello, and the same events again", async () => {
  await daemon.start()
  link.open()
  await until(() => daemon.listening)
  daemon.forget()
  emitMany(2)
  await until(() => daemon.events.length === 2)
  inOrder(2)
  assert.equal(daemon.hellos.length, 2)
})

test("503 (disk full) keeps the events and sends them again", async () => {
  daemon.refuse = [503, 503]
  await daemon.start()
  link.open()
  emitMany(2)
  await until(() => daemon.events.length === 2)
  inOrder(2)
})

test("an event that is refused for good is given up, and only that one", async () => {
  daemon.poison = "odd"
  await daemon.start()
  emitMany(5)
  const seq = link.emit("odd", {})
  const heard = link.acknowledged(seq, 2000)
  emitMany(5)
  link.open()
  await until(() => daemon.events.length === 10)
  assert.equal(link.dropped, 1)
  assert.equal(await heard, false)
})

test("acknowledged waits for the daemon's answer, and no longer than it is told", async () => {
  const seq = link.emit("judge.created", { sessionID: "j" })
  assert.equal(await link.acknowledged(seq, 20), false)
  await daemon.start()
  link.open()
  assert.equal(await link.acknowledged(seq, 2000), true)
  assert.deepEqual(daemon.kinds(), ["judge.created"])
})

test("the hooks' state comes with hello", async () => {
  daemon.state = { gate: true, gate_ms: 77, context: true }
  await daemon.start()
  assert.equal(link.state.gate, false)
  link.open()
  await until(() => link.connected)
  assert.deepEqual(link.state, { gate: true, gate_ms: 77, context: true })
})

test("a question without an answer in time is answered null", async () => {
  daemon.answer = () => new Promise(() => {})
  await daemon.start()
  link.open()
  await until(() => link.connected)
  const start = Date.now()
  assert.equal(await link.ask("gate", {}, 50), null)
  assert.ok(Date.now() - start < 1000)
})

test("a line that is no JSON does not end the stream", async () => {
  await daemon.start()
  link.open()
  await until(() => daemon.listening)
  daemon.line("{oops")
  daemon.line("")
  daemon.order({ id: "o1" })
  await until(() => orders.length === 1)
  assert.equal(daemon.hellos.length, 1)
})

test("after close nothing is sent and nobody reconnects", async () => {
  await daemon.start()
  link.open()
  await until(() => daemon.listening)
  link.close()
  emitMany(3)
  await new Promise((resolve) => setTimeout(resolve, 400))
  assert.equal(daemon.events.length, 0)
  assert.equal(daemon.hellos.length, 1)
})

test("a dead socket file means that the daemon is absent", async () => {
  await assert.rejects(post(`${daemon.folder}/none`, "/v1/hello", {}, 500), isAbsent)
  writeFileSync(`${daemon.folder}/file`, "")
  await assert.rejects(post(`${daemon.folder}/file`, "/v1/hello", {}, 500), isAbsent)
})
