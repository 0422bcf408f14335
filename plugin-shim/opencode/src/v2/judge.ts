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

  constructor(client: Client, tracker: Tracker, announcer: Announcer) {
    super(client, tracker, announcer)
    this.#client = client
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

  /** A request of a judge session sees one system text and no tools; its permissions forbid them anyway. */
  context(event: Json): void {
    const { system, tools } = event
    if (Array.isArray(system)) system.splice(0, system.length, { type: "text", text: AGENT.prompt })
    for (const name of isRecord(tools) ? Object.keys(tools) : []) delete (tools as Json)[name]
  }
}
