// The mod of the plugin: what Claude Code's hooks can't do. It runs beside them, never in their place.
//
// The hooks tell the daemon what happens. This module adds two fields to what they pass on: that it runs, and
// who submitted a prompt. So nothing is told twice. By itself it tells of Esc, shows what a judgement comes
// to, and answers the slash commands without a turn of the model. It decides nothing: what is shown, and for
// how long, is the daemon's answer.
//
// When anything goes wrong it does nothing, as if there were only the hooks. It runs with all rights of the
// person, so it reads no file and sends no text of the session. Whose the socket is, it can't see from here:
// hook.sh looks, each time before something is sent.

const WAIT_MS = 300 // a daemon that is silent for longer is not waited for
const PAUSE_MS = 1000
const PATIENCE = 5 // times that there is no answer, or nothing to tell yet: the Stop hook may start a daemon
const TOAST_MS = 8000
const MOST_KINDS = 50

let isInteractive = false
let isOff = false
let session = ''
let prompt = ''
let line // what stands below the prompt
let end // the newest message of the turn that ended, while its judgement is followed
let turn = 0 // counts prompts and ends of turns: what is shown belongs to the newest
const kinds = new Map() // a prompt that was submitted -> who did
const bare = new Set() // commands that are ours without a prefix too

/** The daemon's socket, if it is this person's and nobody else may replace it; else ''. */
async function place($) {
  try {
    const found = await $.process.run([`${$.plugin.root}/scripts/hook.sh`, 'Where'], { timeoutMs: 2000 })
    return found.stdout.trim()
  } catch {
    return ''
  }
}

/** Tells the daemon something. Its answer, {} when it has none to give; undefined when it is silent. */
async function tell($, socketPath, event, body) {
  if (!socketPath) return undefined
  const init = { method: 'POST', socketPath, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  try {
    const found = await Promise.race([$.clock.sleep(WAIT_MS), $.http.fetch(`http://reflectd/v1/hooks/${event}`, init)])
    return found?.ok ? JSON.parse(found.text || '{}') : undefined
  } catch {
    return undefined
  }
}

/** Puts a text below the prompt; undefined takes it away. */
function pin($, text) {
  if (text !== line) $.ui.status((line = text))
}

/** The id of the newest message; undefined where this version does not say. */
async function newest($) {
  try {
    return (await $.session.messages({ last: 1 })).at(-1)?.uuid
  } catch {
    return undefined
  }
}

/** Whether the person went back to before the end of the turn. A compaction takes messages away too. */
async function isRewound($) {
  try {
    return end !== undefined && !Array.isArray(await $.session.messages({ after: end }))
  } catch {
    return false
  }
}

/** Shows what the daemon says of the turn that just ended, until it has no more to say or something new begins. */
async function follow($, id) {
  const mine = ++turn
  let socketPath = ''
  let pause = PAUSE_MS
  let isHeard = false
  end = await newest($)
  for (let missed = 0; missed < PATIENCE; missed++) {
    await $.clock.sleep(pause)
    if (mine === turn) socketPath ||= await place($)
    if (mine !== turn) return
    if (await isRewound($)) {
      pin($, undefined)
      const told = { session_id: id, prompt_id: prompt, turn_id: `rewound ${end}`, reason: 'rewind' }
      await tell($, socketPath, 'ModAborted', told)
      return
    }
    const said = await tell($, socketPath, 'ModWatch', { session_id: id })
    if (!said) socketPath = '' // perhaps another daemon, elsewhere
    for (const text of said?.toasts ?? []) $.ui.toast(text, { timeoutMs: TOAST_MS })
    if (mine !== turn) return
    pin($, said?.status)
    pause = said?.again_ms || PAUSE_MS
    isHeard ||= Boolean(said?.again_ms || said?.toasts)
    if (said && isHeard && !said.again_ms) return
    if (said?.again_ms) missed = 0
  }
}

/** What `reflectd VERB` says of this session: for the person alone, no request to the model. */
async function answer($, verb) {
  let said = 'reflectd did not answer; `reflectd doctor` in a terminal says why'
  try {
    const argv = [`${$.plugin.root}/scripts/ctl.sh`, verb, await $.session.id()]
    said = (await $.process.run(argv, { timeoutMs: 20000 })).stdout
  } catch {
    // said above
  }
  // it is drawn behind the plugin's name, where a block of code has to begin on a line of its own
  return { text: `\n\n~~~~~~\n${said.trimEnd()}\n~~~~~~`, isTextDisplayOnly: true }
}

export function register(on) {
  on('session.start', async ($, e, next) => {
    isInteractive = e.isInteractive === true
    isOff = (await $.env.get('REFLECTD_DISABLE')) === '1'
    for (const name of isOff ? [] : ['why', 'off', 'on']) {
      try {
        await $.command.register({ name, description: `reflectd ${name}, for this session` })
        bare.add(name)
      } catch {
        // the name is somebody else's
      }
    }
    return next(e)
  })

  on('command.run', { command: 'reflectd:status' }, ($) => answer($, 'status'))
  on('command.run', { command: 'reflectd:why' }, ($) => answer($, 'why'))
  on('command.run', { command: 'reflectd:off' }, ($) => answer($, 'off'))
  on('command.run', { command: 'reflectd:on' }, ($) => answer($, 'on'))
  on('command.run', { command: 'why' }, ($, e, next) => (bare.has('why') ? answer($, 'why') : next(e)))
  on('command.run', { command: 'off' }, ($, e, next) => (bare.has('off') ? answer($, 'off') : next(e)))
  on('command.run', { command: 'on' }, ($, e, next) => (bare.has('on') ? answer($, 'on') : next(e)))

  on('classic.SessionStart', ($, e, next) => next({ ...e, reflectd_mod: 1 }))

  on('prompt.submit', ($, e, next) => {
    if (kinds.size >= MOST_KINDS) kinds.clear()
    kinds.set(e.text, e.origin?.kind ?? '')
    return next(e)
  })

  on('classic.UserPromptSubmit', ($, e, next) => {
    const kind = kinds.get(e.prompt) ?? ''
    kinds.delete(e.prompt)
    session = e.session_id
    prompt = e.prompt_id ?? ''
    turn++
    pin($, undefined)
    return next({ ...e, reflectd_mod: 1, reflectd_origin: kind })
  })

  // A request that is not answered yet holds up the end of `claude -p`: nothing is asked where nobody sits.
  on('classic.Stop', ($, e, next) => {
    if (isInteractive && !isOff) void follow($, e.session_id)
    return next(e)
  })

  on('session.compact', ($, e, next) => {
    end = undefined
    return next(e)
  })

  on('turn.complete', async ($, e, next) => {
    const done = await next(e)
    if (isInteractive && !isOff && session && e.reason === 'aborted' && !e.agentId) {
      await tell($, await place($), 'ModAborted', { session_id: session, prompt_id: prompt, turn_id: e.turnId })
    }
    return done
  })
}
