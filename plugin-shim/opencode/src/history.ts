/**
 * What people typed in past sessions, page by page: sessions in the order in which they were used last, of each
 * its human messages with the agent's last words before them. It is read only when the daemon asks.
 */
import type { PluginInput } from "@opencode-ai/plugin"
import { hostError, isHumanMessage, isRefused, projectSaid, sessionInfo } from "./project.ts"
import { sleep } from "./pump.ts"
import { JUDGE_TITLE, list, number, reason, record, text } from "./wire.ts"
import type { Json } from "./wire.ts"

const MOST_SESSIONS = 50
const MOST_MESSAGES = 2000 // of a session, the newest
const MOST_BYTES = 4 << 20

/** `after` is the mark of the last session of the page before it, "" for the oldest sessions. */
export async function historyPage(
  client: PluginInput["client"],
  after: string,
  limit: number,
): Promise<Json> {
  const got = await client.session.list()
  if (got.error || !Array.isArray(got.data)) throw new Error(reason(got.error))
  const all = got.data
    .map(record)
    .filter((info) => text(info["id"]) && !text(info["parentID"]) && info["title"] !== JUDGE_TITLE)
    .map((info) => ({ info, mark: markOf(info) }))
    .filter(({ mark }) => mark > after)
    .sort((a, b) => (a.mark < b.mark ? -1 : 1))
  const sessions: Json[] = []
  let bytes = 0
  let last = after
  for (const { info, mark } of all) {
    if (sessions.length >= Math.min(limit, MOST_SESSIONS) || bytes >= MOST_BYTES) break
    const messages = await said(client, text(info["id"]))
    const session = { ...sessionInfo(info), updated: updatedOf(info) }
    bytes += Buffer.byteLength(JSON.stringify(messages))
    sessions.push({ session, messages })
    last = mark
    await sleep(0) // the host's own work goes first
  }
  return { sessions, after: last, more: sessions.length < all.length }
}

const updatedOf = (info: Json): number => Math.floor(number(record(info["time"])["updated"]) ?? 0)

/** Sorts by when a session was used last; two of one moment by their ids. */
const markOf = (info: Json): string => `${String(updatedOf(info)).padStart(15, "0")}:${text(info["id"])}`

/** The human messages of a session, each after the agent's answer before it; none when it can't be read. */
async function said(client: PluginInput["client"], id: string): Promise<Json[]> {
  const path = { id }
  const got = await client.session
    .messages({ path, query: { limit: MOST_MESSAGES } })
    .catch((error: unknown) => ({ data: undefined, error: hostError(error) }))
  const found: Json[] = []
  let answer: unknown
  for (const message of list(got.data)) {
    if (isHumanMessage(message)) {
      if (answer) found.push(projectSaid(answer))
      found.push(projectSaid(message))
      answer = undefined
    } else if (record(record(message)["info"])["role"] === "assistant") {
      if (answer && isRefused(answer)) found.push(projectSaid(answer))
      answer = message
    }
  }
  if (answer && isRefused(answer)) found.push(projectSaid(answer))
  return found
}
