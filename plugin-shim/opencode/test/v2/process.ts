/**
 * The replayed host as a process of its own, with the plugin in it, for tests that have a real daemon. Its
 * arguments are the directory and the calls that it lacks. It reads one JSON object a line: `{say: [event]}`,
 * `{messages: {session: [message]}}`, `{request: session}`, `{close: true}`; and it prints one for each call: `{name, input}`,
 * where the name `request` has the system texts of that request.
 */
import { createInterface } from "node:readline"
import plugin from "../../src/index.ts"
import type { Calls } from "../../src/v2/calls.ts"
import type { Json } from "../../src/wire.ts"
import { ContextDouble } from "./double.ts"
import type { Event } from "./double.ts"

const [directory = "", ...lacks] = process.argv.slice(2)
const host = new ContextDouble(directory, lacks as (keyof Calls)[])
host.onCall = (name, input) => console.log(JSON.stringify({ name, input }))
const close = plugin.setup(host)
for await (const line of createInterface({ input: process.stdin })) {
  const { say, messages, request, close: leave } = JSON.parse(line) as Json & { say?: Event[]; close?: true }
  for (const [id, all] of Object.entries((messages ?? {}) as Record<string, Json[]>)) {
    host.sessions.set(id, { id, title: "Work", location: { directory } })
    host.messages.set(id, all)
  }
  host.say(...(say ?? []))
  if (request) console.log(JSON.stringify({ name: "request", input: await host.request(String(request)) }))
  if (leave) break
}
await close?.()
process.exit()
