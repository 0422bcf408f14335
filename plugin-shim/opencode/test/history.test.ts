import assert from "node:assert/strict"
import { test } from "node:test"
import { History } from "../src/history.ts"
import { list, record } from "../src/wire.ts"
import type { Json } from "../src/wire.ts"
import { assistant, HostDouble, user } from "./host-double.ts"

const historyPage = (client: HostDouble["client"], after: string, limit: number) =>
  new History(client).page(after, limit)
const ids = (page: Json) => list(page["sessions"]).map((one) => record(record(one)["session"])["id"])
const said = (page: Json, at = 0) =>
  list(record(list(page["sessions"])[at])["messages"]).map((message) => {
    const { info, parts } = record(message)
    return [record(info)["role"], record(list(parts)[0])["text"]]
  })

function hostWith(count: number): HostDouble {
  const host = new HostDouble()
  for (let at = 0; at < count; at++) {
    const id = `ses_${at}`
    host.sessions.set(id, { id, title: `t${at}`, directory: "/p", time: { updated: 1000 + (at % 3) } })
    host.messages.set(id, [user(`request ${at}`), assistant("done")])
  }
  return host
}

test("every session once, by when it was used last, page by page; the host lists them once", async () => {
  const host = hostWith(7)
  const history = new History(host.client)
  const seen: unknown[] = []
  let after = ""
  for (let more = true, pages = 0; more; pages++) {
    assert.ok(pages < 5)
    const page = await history.page(after, 3)
    seen.push(...ids(page))
    after = String(page["after"])
    more = page["more"] === true
  }
  assert.deepEqual(seen, ["ses_0", "ses_3", "ses_6", "ses_1", "ses_4", "ses_2", "ses_5"])
  assert.equal(host.named("list").length, 1)
  assert.deepEqual(await history.page(after, 3), { sessions: [], after, more: false })
  assert.deepEqual(host.named("list")[1]?.["query"], { limit: 1_000_000, start: 1002 })
  host.sessions.set("ses_0", { id: "ses_0", title: "t", time: { updated: 2000 } })
  assert.deepEqual(ids(await historyPage(host.client, after, 3)), ["ses_0"])
})

test("a list has the sessions and nothing that was said", async () => {
  const host = hostWith(3)
  const page = await new History(host.client).page("", 2, true)
  assert.deepEqual(ids(page), ["ses_0", "ses_1"])
  assert.deepEqual(
    list(page["sessions"]).map((one) => Object.keys(record(one))),
    [["session"], ["session"]],
  )
  assert.equal(host.named("messages").length, 0)
  assert.equal(page["more"], true)
})

test("sub-agents and judges are no sessions of a person's", async () => {
  const host = hostWith(1)
  host.sessions.set("ses_c", { id: "ses_c", parentID: "ses_0", title: "t", time: { updated: 1 } })
  host.sessions.set("ses_j", { id: "ses_j", title: "[reflectd judge]", time: { updated: 1 } })
  assert.deepEqual(ids(await historyPage(host.client, "", 20)), ["ses_0"])
})

test("what a person said, with the agent's words before it, and why they refused a call", async () => {
  const host = hostWith(1)
  const error =
    "The user rejected permission to use this specific tool call with the following feedback: use bun"
  const refused = { type: "tool", tool: "bash", callID: "c", state: { status: "error", error, input: {} } }
  const quiet = { type: "tool", tool: "bash", callID: "d", state: { status: "completed", output: "secret" } }
  host.messages.set("ses_0", [
    user("Add a test"),
    assistant("working", {}, [quiet]),
    assistant("Shall I use npm?", {}, [refused]),
    assistant("All done."),
    user("No, use bun"),
    user("continue", { synthetic: true }),
    user("feedback", { metadata: { reflectd: { order: "o" } } }),
    assistant("Fine."),
  ])
  const page = await historyPage(host.client, "", 20)
  assert.deepEqual(said(page), [
    ["user", "Add a test"],
    ["assistant", "Shall I use npm?"],
    ["assistant", "All done."],
    ["user", "No, use bun"],
  ])
  assert.ok(JSON.stringify(page).includes("with the following feedback: use bun"))
  assert.ok(!JSON.stringify(page).includes("secret"))
})

// shows: I36, I44
test("bounded: of a long text its ends, of a large page what fits, of odd messages nothing", async () => {
  const host = hostWith(60)
  const long = Array.from({ length: 400 }, () => user("long words ".repeat(3000)))
  for (const id of host.sessions.keys()) host.messages.set(id, long)
  const page = await historyPage(host.client, "", 1000)
  const bytes = Buffer.byteLength(JSON.stringify(page))
  assert.ok(bytes < 16 << 20, `${bytes} bytes`)
  assert.ok(list(page["sessions"]).length < 60 && page["more"] === true)
  for (const odd of [undefined, {}, [null, 1, { info: 1, parts: {} }]]) {
    host.messages.set("ses_0", odd)
    assert.deepEqual(said(await historyPage(host.client, "", 1)), [])
  }
})
