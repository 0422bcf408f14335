/**
 * How long the hook `experimental.chat.system.transform` takes, with a daemon on a real socket that offers points,
 * with one that is switched off, and without one: for `python -m bench --only transform`. Its argument is the
 * number of requests. It prints one line of JSON: what was measured, and median, 99th of 100 and worst, in ms.
 */
import { performance } from "node:perf_hooks"
import plugin from "../src/index.ts"
import { DaemonDouble, until } from "./daemon-double.ts"

const runs = Number(process.argv[2] ?? 1000)
const BASE = "You are opencode."
const POINTS = "[oth-001] helpful=1 harmful=0 :: a point of some length, as they are.\n".repeat(50)
const found: Record<string, number[]> = {}

async function measure(name: string, directory: string, given: boolean, ready: () => Promise<void>) {
  process.env["REFLECTD_SOCKET"] = `${directory}/d.sock`
  const client = { app: { log: async () => ({}), agents: async () => ({ data: [] }) }, session: {} }
  const hooks = await plugin.server({ client, directory } as unknown as Parameters<typeof plugin.server>[0])
  const hook = hooks["experimental.chat.system.transform"]
  if (!hook) throw new Error("the plugin has no such hook")
  await ready()
  const input = { sessionID: "ses_1" } as Parameters<typeof hook>[0]
  const took: number[] = []
  for (let n = -10; n < runs; n++) {
    const system = [BASE]
    const before = performance.now()
    await hook(input, { system })
    if (n >= 0) took.push(performance.now() - before)
    if (system.length !== (given ? 2 : 1)) throw new Error(`${name}: ${system.length} system texts`)
  }
  await hooks.dispose?.()
  took.sort((a, b) => a - b)
  found[name] = [took[runs >> 1], took[Math.floor(runs * 0.99)], took[runs - 1]] as number[]
}

for (const context of [true, false]) {
  const daemon = await new DaemonDouble().start()
  daemon.state = { ...daemon.state, context }
  daemon.answer = async () => ({ text: POINTS })
  await measure(context ? "points are given" : "switched off", daemon.folder, context, () =>
    until(() => daemon.listening),
  )
  await daemon.remove()
}
const gone = new DaemonDouble()
await measure("no daemon", gone.folder, false, async () => {})
await gone.remove()
console.log(JSON.stringify(found))
process.exit()
