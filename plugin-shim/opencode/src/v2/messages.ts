/**
 * Messages and tool calls of opencode 2 in the form of opencode 1, so that one projection serves both. Pure. It
 * leaves out what it does not know (I36).
 */
import { list, record, text } from "../wire.ts"
import type { Json } from "../wire.ts"

export const ABORTED = "MessageAbortedError"

/** The messages that `session.context` gives, oldest first. A user's message has the agent that answered it. */
export function oldMessages(items: unknown): Json[] {
  const found: Json[] = []
  let agent: unknown
  for (const item of list(items).map(record).reverse()) {
    if (item["type"] === "assistant") agent = item["agent"]
    const message = item["type"] === "assistant" ? assistant(item) : fromUser(item, agent)
    if (message) found.push(message)
  }
  return found.reverse()
}

/** An error as opencode 1 names it: both names of what a person stopped are known. */
export function oldError(error: unknown): Json {
  const { type, message } = record(error)
  return { name: text(type) === "aborted" ? ABORTED : text(type), message: text(message) }
}

/** The parts of what came in as a user's message: typed, or put in by a program. */
export function userParts(type: unknown, payload: Json, id: string): Json[] | undefined {
  const said = { type: "text", id, text: text(payload["text"]), metadata: payload["metadata"] }
  switch (type) {
    case "user":
      return [...(said.text ? [said] : []), ...list(payload["files"]).map((file) => fileOf(file, id))]
    case "synthetic":
      return [{ ...said, synthetic: true }]
    case "compaction":
      return [{ type: "compaction", auto: payload["reason"] === "auto" }]
    default:
      return undefined
  }
}

const fileOf = (file: unknown, id: string): Json => ({ type: "file", id, filename: record(file)["name"] })

function fromUser(item: Json, agent: unknown): Json | undefined {
  const id = text(item["id"])
  const parts = userParts(item["type"], item, id)
  return parts && { info: { id, role: "user", agent, time: item["time"] }, parts }
}

function assistant(item: Json): Json {
  const { id, providerID } = record(item["model"])
  const { agent, finish, cost, tokens, time, error } = item
  const info = {
    id: item["id"],
    role: "assistant",
    agent,
    providerID,
    modelID: id,
    finish,
    cost,
    tokens,
    time,
  }
  const parts = list(item["content"])
    .map(record)
    .map((part) =>
      part["type"] === "tool" ? toolPart(part["id"], part["name"], part["state"], part["time"]) : part,
    )
  return { info: { ...info, ...(error !== undefined && { error: oldError(error) }) }, parts }
}

/** A tool call. What opencode 2 calls `subagent` is the tool `task` of opencode 1. */
export function toolPart(id: unknown, name: unknown, state: unknown, time?: unknown): Json {
  const { status, input, content, structured, metadata, error } = record(state)
  const { created, ran, completed } = record(time)
  const output = list(content)
    .map((part) => text(record(part)["text"]))
    .join("\n")
  return {
    type: "tool",
    id,
    callID: id,
    tool: name === "subagent" ? "task" : name,
    state: {
      status,
      input,
      output,
      metadata: metadata ?? structured,
      error: text(record(error)["message"]),
      time: { start: ran ?? created, end: completed },
    },
  }
}
