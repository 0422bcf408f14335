/**
 * HTTP over the daemon's Unix socket, with node:http, which Bun and Node both have. Each request has its own
 * connection, because a restarting daemon could close one that is kept alive while it is used.
 */
import http from "node:http"
import { checkPrivate } from "./daemon.ts"

const HEADERS = { host: "reflectd", accept: "application/json" }
const MOST = 32 << 20

/** The daemon answered with an error status. */
export class Refused extends Error {
  override readonly name = "Refused"
  readonly status: number

  constructor(status: number, body: string) {
    super(`reflectd answered ${status}: ${body.slice(0, 500)}`)
    this.status = status
  }
}

export function post(socketPath: string, path: string, body: unknown, ms: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    checkPrivate(socketPath)
    const data = Buffer.from(JSON.stringify(body))
    const headers = { ...HEADERS, "content-type": "application/json", "content-length": data.length }
    const request = http.request({ socketPath, path, method: "POST", headers, agent: false }, (response) => {
      let answer = ""
      response.setEncoding("utf8")
      response.on("data", (chunk: string) => {
        answer += chunk
        if (answer.length > MOST) request.destroy(new Error("answer too large"))
      })
      response.on("error", fail)
      response.on("end", () => {
        clearTimeout(timer)
        const status = response.statusCode ?? 0
        if (status >= 300) return reject(new Refused(status, answer))
        try {
          resolve(answer ? JSON.parse(answer) : {})
        } catch (error) {
          reject(error as Error)
        }
      })
      response.on("close", () => fail(new Error("connection closed")))
    })
    const fail = (error: Error) => {
      clearTimeout(timer)
      reject(error)
    }
    const timer = setTimeout(() => {
      fail(new Error(`no answer in ${ms} ms`))
      request.destroy()
    }, ms)
    timer.unref()
    request.on("error", fail)
    request.end(data)
  })
}

/**
 * Read a stream of JSON lines until it ends. Resolves when the daemon closes it or `signal` fires; rejects
 * when it can't be opened. A stream with no line and no heartbeat for `silence` ms counts as ended.
 */
export function lines(
  socketPath: string,
  path: string,
  silence: number,
  signal: AbortSignal,
  onLine: (line: string) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    checkPrivate(socketPath)
    let timer: NodeJS.Timeout | undefined
    const stop = () => {
      clearTimeout(timer)
      signal.removeEventListener("abort", onAbort)
    }
    const done = () => (stop(), resolve())
    const fail = (error: Error) => (stop(), reject(error))
    const onAbort = () => (done(), request.destroy())
    const listen = () => {
      clearTimeout(timer)
      timer = setTimeout(() => (done(), request.destroy()), silence)
      timer.unref()
    }
    const request = http.request(
      { socketPath, path, method: "GET", headers: HEADERS, agent: false },
      (response) => {
        response.setEncoding("utf8")
        response.on("error", done)
        response.on("end", done)
        response.on("close", done)
        if (response.statusCode !== 200) {
          fail(new Refused(response.statusCode ?? 0, ""))
          return void request.destroy()
        }
        let pending = ""
        response.on("data", (chunk: string) => {
          listen()
          const parts = (pending + chunk).split("\n")
          pending = parts.pop() ?? ""
          for (const line of parts) if (line.trim()) onLine(line)
          if (pending.length > MOST) request.destroy()
        })
      },
    )
    signal.addEventListener("abort", onAbort)
    request.on("error", fail)
    request.on("socket", (socket) => socket.unref?.())
    listen()
    request.end()
    if (signal.aborted) onAbort()
  })
}
