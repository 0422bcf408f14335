/** The judge under opencode 2: one text that the host's model makes, else a session that may do nothing. */
import { AGENT, Judges, orAborted } from "../judge.ts"
import type { Announcer } from "../judge.ts"
import type { Client } from "../site.ts"
import type { Tracker } from "../tracker.ts"
import { isRecord, model, record, text } from "../wire.ts"
import type { Json, Order } from "../wire.ts"
import type { Call } from "./calls.ts"

export class JudgesV2 extends Judges {
  readonly #client: Client & { generate?: Call<"generate.text"> }
  readonly #tracker: Tracker

  constructor(client: Client, tracker: Tracker, announcer: Announcer) {
    super(client, tracker, announcer)
    this.#client = client
    this.#tracker = tracker
  }

  /** There is no place for a system text, so the rules stand above the case. */
  protected override async answer(order: Order, signal: AbortSignal): Promise<Json> {
    const prompt = `${text(order.data["system"])}\n\n${text(order.data["text"])}`
    const generate = this.#client.generate
    if (!generate) {
      const data = { ...order.data, system: AGENT.prompt, text: prompt }
      return super.answer({ ...order, data }, signal)
    }
    const wanted = model(order.data["model"])
    const { providerID = "", modelID = "" } = wanted ?? {}
    const asked = generate({ prompt, ...(wanted && { model: { providerID, id: modelID } }) })
    const said = await orAborted(asked, signal)
    return { text: text(record(said)["text"]), ...(wanted && { model: wanted }) }
  }

  /** The hook `context`: a judge session sees one system text and no tools. */
  readonly context = (event: unknown): void => {
    try {
      const { sessionID, system, tools } = record(event)
      if (!this.#tracker.isJudge(text(sessionID))) return
      if (Array.isArray(system)) system.splice(0, system.length, { type: "text", text: AGENT.prompt })
      for (const name of isRecord(tools) ? Object.keys(tools) : []) delete (tools as Json)[name]
    } catch {
      // An error here would cost the turn. The session's permissions forbid every tool anyway.
    }
  }
}
