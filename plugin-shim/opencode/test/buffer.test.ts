import assert from "node:assert/strict"
import { test } from "node:test"
import { EventBuffer } from "../src/buffer.ts"

const seqs = (buffer: EventBuffer) => buffer.batch(100).map((event) => event.seq)

test("numbers from 1 and forgets what was acknowledged", () => {
  const buffer = new EventBuffer()
  for (const kind of ["a", "b", "c"]) buffer.push(kind, {})
  assert.deepEqual(seqs(buffer), [1, 2, 3])
  assert.equal(buffer.acknowledge(2), 2)
  assert.deepEqual(seqs(buffer), [3])
  assert.equal(buffer.acknowledge(9), 1)
  assert.equal(buffer.push("d", {}), 4)
})

test("a batch is at most as long as asked, and asking again gives the same events", () => {
  const buffer = new EventBuffer()
  for (let i = 0; i < 5; i++) buffer.push("a", { i })
  assert.deepEqual(buffer.batch(2), buffer.batch(2))
  assert.equal(buffer.batch(2).length, 2)
})

// shows: I44
test("full, it drops the oldest activity first, then the oldest, and counts them", () => {
  const buffer = new EventBuffer(3)
  for (const kind of ["idle", "activity", "activity", "human", "idle"]) buffer.push(kind, {})
  assert.deepEqual(seqs(buffer), [1, 4, 5])
  buffer.push("busy", {})
  assert.deepEqual(seqs(buffer), [4, 5, 6])
  assert.equal(buffer.dropped, 3)
})

test("activities that were acknowledged or given up do not confuse the dropping", () => {
  const buffer = new EventBuffer(2)
  buffer.push("activity", {})
  buffer.discardOldest()
  buffer.push("activity", {})
  buffer.acknowledge(2)
  for (const kind of ["a", "b", "c"]) buffer.push(kind, {})
  assert.deepEqual(seqs(buffer), [4, 5])
})
