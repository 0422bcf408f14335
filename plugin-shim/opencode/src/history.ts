/**
 * What people typed in past sessions, page by page: sessions in the order in which they were used last, of each
 * its human messages with the agent's last words before them. It is read only when the daemon asks. The list of
 * sessions is kept for as long as the pages follow each other, because the host takes seconds for a long one.
 */
import type { PluginInput } from "@opencode-ai/plugin"
import { hostError, isHumanMessage, isRefused, projectSaid, sessionInfo } from "./project.ts"
import { sleep } from "./pump.ts"
import { JUDGE_TITLE, list, number, reason, record, text } from "./wire.ts"
import type { Json } from "./wire.ts"

const MOST_LISTED = 1_000_000 // without a number the host gives the newest hundred
const MOST_SESSIONS = 100
const MOST_MESSAGES = 2000 // of a session, the newest
const MOST_BYTES = 4 << 20
const KEPT_MS = 60_000

interface Listed {
  mark: string
  session: Json
}

export class History {
  readonly #client: PluginInput["client"]
  #listed: Listed[] = []
  #until = 0

  constructor(client: PluginInput["client"]) {
    this.#client = client
  }

  /**
   * `after` is the mark of the last session of the page before it, "" for the oldest sessions. `listed`: only
   * which sessions there are, and nothing that was said in them.
   */
  async page(after: string, limit: number, listed = false, now = Date.now()): Promise<Json> {
    const known = after && now < this.#until ? this.#listed : await this.#list(after)
    const rest = known.filter(({ mark }) => mark > after)
    const sessions: Json[] = []
    let bytes = 0
    let last = after
    for (const { mark, session } of rest) {
      if (sessions.length >= Math.min(limit, MOST_SESSIONS) || bytes >= MOST_BYTES) break
      last = mark
      if (listed) {
        sessions.push({ session })
        continue
      }
      const messages = await this.#said(text(session["id"]))
      bytes += Buffer.byteLength(JSON.stringify(messages))
      sessions.push({ session, messages })
      await sleep(0) // the host's own work goes first
    }
    const more = sessions.length < rest.length
    this.#listed = more ? rest.slice(sessions.length) : []
    this.#until = more ? now + KEPT_MS : 0
    return { sessions, after: last, more }
  }

  /** The sessions that were used since `after`, that used last at the end. */
  async #list(after: string): Promise<Listed[]> {
    const start = Number.parseInt(after, 10) || 0
    const query = { limit: MOST_LISTED, ...(start && { start }) } as { directory?: string } // more than it says
    const got = await this.#client.session.list({ query })
    if (got.error || !Array.isArray(got.data)) throw new Error(reason(got.error))
    return got.data
      .map(record)
      .filter((info) => text(info["id"]) && !text(info["parentID"]) && info["title"] !== JUDGE_TITLE)
      .map((info) => ({ mark: markOf(info), session: { ...sessionInfo(info), updated: updatedOf(info) } }))
      .sort((a, b) => (a.mark < b.mark ? -1 : 1))
  }

  /** The human messages of a session, each after the agent's answer before it; none when it can't be read. */
  async #said(id: string): Promise<Json[]> {
    const path = { id }
    const got = await this.#client.session
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
}

const updatedOf = (info: Json): number => Math.floor(number(record(info["time"])["updated"]) ?? 0)

/** Sorts by when a session was used last; two of one moment by their ids. */
const markOf = (info: Json): string => `${String(updatedOf(info)).padStart(15, "0")}:${text(info["id"])}`
