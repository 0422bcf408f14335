/** Does one step after the other until nothing is left. A failed step is repeated after a growing wait. */

const RETRY_MS = { first: 100, most: 5000 }

export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const wake = () => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", wake)
      resolve()
    }
    const timer = setTimeout(wake, ms)
    timer.unref()
    signal?.addEventListener("abort", wake)
  })
}

/** As `sleep`, where the host itself waits: with nothing else to do, Bun does not wake for a timer without a ref. */
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export class Pump {
  readonly #step: () => Promise<boolean> | false
  readonly #recover: (error: unknown) => Promise<boolean>
  #running = false
  #again = false

  /**
   * `step` returns whether there is more to do; `recover`, whether the failed step can be repeated at once.
   */
  constructor(step: () => Promise<boolean> | false, recover: (error: unknown) => Promise<boolean>) {
    this.#step = step
    this.#recover = recover
  }

  /** Tell the pump that there may be work. Returns at once; the work begins after the caller's own. */
  kick(): void {
    this.#again = true
    if (this.#running) return
    this.#running = true
    setImmediate(() => void this.#run())
  }

  async #run(): Promise<void> {
    let wait = RETRY_MS.first
    while (this.#again) {
      this.#again = false
      try {
        if (await this.#step()) this.#again = true
        wait = RETRY_MS.first
      } catch (error) {
        this.#again = true
        const recovered = await this.#recover(error).catch(() => false)
        if (!recovered || wait > RETRY_MS.first) await sleep(wait)
        wait = Math.min(wait * 2, RETRY_MS.most)
      }
    }
    this.#running = false
  }
}
