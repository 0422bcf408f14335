// Run by `claude plugin test` (tests/plugin/test_mod.py): the mod in Claude Code's own engine. What `beneath`
// registers stands for everything below it: programs, the daemon, the terminal. The test moves the clock.
import { expect, mock, test } from 'claude-code/testing'

const SESSION = { session_id: 's-1', transcript_path: '/t.jsonl', cwd: '/work' }
const SOCKET = '/run/r.sock'
const STOP = { ...SESSION, stop_hook_active: false, last_assistant_message: 'Done.' }

/** `daemon(event, n)` answers the nth request. Gives what was run, sent and shown, and the clock. */
function beneath(on, daemon = (event, n) => ({}), socket = SOCKET) {
  const seen = { run: [], sent: [], toasts: [], status: [], hooks: {} }
  on('session.start', (_, e) => ({ cwd: e.cwd }))
  on('session.id', () => ({ value: 's-1' }))
  on('env.get', () => ({ value: undefined }))
  on('command.register', (_, e) => (e.name === 'off' ? { deny: 'taken' } : { value: { command: e.name } }))
  on('process.run', (_, e) => {
    seen.run.push(e.argv.map(word => word.split('/').pop()).join(' '))
    const stdout = e.argv[1] === 'Where' ? `${socket}\n` : 'it runs\n'
    return { value: { exitCode: 0, stdout, stderr: '', isStdoutTruncated: false, isStderrTruncated: false } }
  })
  on('http.fetch', async (_, e) => {
    const event = e.url.split('/').pop()
    seen.sent.push({ event, socketPath: e.init.socketPath, ...JSON.parse(e.init.body) })
    const text = JSON.stringify(await daemon(event, seen.sent.length))
    return { value: { status: 200, ok: true, headers: {}, text } }
  })
  on('ui.toast', (_, e) => {
    seen.toasts.push(e.text)
    return { value: undefined }
  })
  on('ui.status', (_, e) => {
    seen.status.push(e.text)
    return { value: undefined }
  })
  on('prompt.submit', (_, e) => ({ text: e.text }))
  on('turn.complete', (_, e) => ({ text: e.answer }))
  on('command.run', () => ({ text: 'of somebody else' }))
  on('classic.SessionStart', (_, e) => ((seen.hooks.SessionStart = e), {}))
  on('classic.UserPromptSubmit', (_, e) => ((seen.hooks.UserPromptSubmit = e), {}))
  on('classic.Stop', (_, e) => ((seen.hooks.Stop = e), {}))
  return { ...seen, clock: mock.clock(on) }
}

async function start($, isInteractive = true) {
  await $.session.start({ cwd: '/work', surface: isInteractive ? 'terminal' : null, isInteractive })
}

async function type($, text = 'Do it', kind = 'composer') {
  await $.prompt.submit({ text, wait: false, origin: { kind } })
  await $.classic.UserPromptSubmit({ ...SESSION, prompt: text, prompt_id: 'p-1' })
}

async function run($, command) {
  const origin = { kind: 'composer' }
  return (await $.command.run({ command, args: '', origin, presentation: { isFullscreen: true, columns: 100 } })).text
}

async function escape($) {
  await $.turn.complete({ answer: '', durationMs: 1, isAborted: true, reason: 'aborted', turnId: 't-1' })
}

test('hooks carry who submitted a prompt, and that the mod runs', async ($, on) => {
  const seen = beneath(on)
  await start($)
  await $.classic.SessionStart({ ...SESSION, source: 'startup' })
  expect(seen.hooks.SessionStart.reflectd_mod).toBe(1)
  await type($, 'Do it', 'plugin')
  expect(seen.hooks.UserPromptSubmit.reflectd_origin).toBe('plugin')
  expect(seen.hooks.UserPromptSubmit.prompt).toBe('Do it')
  await $.classic.UserPromptSubmit({ ...SESSION, prompt: 'Do it', prompt_id: 'p-2' })
  expect(seen.hooks.UserPromptSubmit.reflectd_origin).toBe('')
})

test('commands are answered; a name of somebody else is left alone', async ($, on) => {
  const seen = beneath(on)
  await start($)
  for (const name of ['reflectd:status', 'reflectd:why', 'reflectd:off', 'reflectd:on', 'why', 'on']) {
    expect(await run($, name)).toContain('it runs')
  }
  expect(await run($, 'off')).toBe('of somebody else')
  expect(seen.run).toEqual(['status', 'why', 'off', 'on', 'why', 'on'].map(verb => `ctl.sh ${verb} s-1`))
  expect(seen.sent.length).toBe(0)
})

test('a judgement is shown while it lasts, then what became of it, until the next prompt', async ($, on) => {
  const over = { toasts: ['Task complete'], status: 'Task complete' }
  const said = [{}, { status: 'judging', again_ms: 1000 }, { again_ms: 1000 }, over]
  const seen = beneath(on, (_, n) => said[n - 1])
  await start($)
  await type($)
  await $.classic.Stop(STOP)
  for (let i = 0; i < 8; i++) await seen.clock.advance(1000)
  expect(seen.sent.length).toBe(4)
  expect(seen.sent[0]).toEqual({ event: 'ModWatch', socketPath: SOCKET, session_id: 's-1' })
  expect(seen.toasts).toEqual(['Task complete'])
  await type($)
  expect(seen.status).toEqual(['judging', undefined, 'Task complete', undefined])
})

test('the next prompt ends it', async ($, on) => {
  const seen = beneath(on, () => ({ status: 'judging', again_ms: 1000 }))
  await start($)
  await $.classic.Stop(STOP)
  await seen.clock.advance(1000)
  await type($)
  const sent = seen.sent.length
  for (let i = 0; i < 5; i++) await seen.clock.advance(1000)
  expect(seen.sent.length).toBe(sent)
  expect(seen.status).toEqual(['judging', undefined])
})

test('a daemon that hangs is not waited for, and soon not asked', async ($, on) => {
  const seen = beneath(on, () => new Promise(() => {}))
  await start($)
  await type($)
  const pressed = escape($)
  await seen.clock.advance(300)
  await pressed
  await $.classic.Stop(STOP)
  for (let i = 0; i < 20; i++) await seen.clock.advance(1000)
  expect(seen.sent.length).toBe(6)
})

test('Esc is told with the prompt that it ended', async ($, on) => {
  const seen = beneath(on)
  await start($)
  await type($)
  await escape($)
  const told = { event: 'ModAborted', socketPath: SOCKET, session_id: 's-1', prompt_id: 'p-1', turn_id: 't-1' }
  expect(seen.sent).toEqual([told])
})

test('nothing is sent to a socket that others may replace', async ($, on) => {
  const seen = beneath(on, () => ({}), '')
  await start($)
  await type($)
  await escape($)
  await $.classic.Stop(STOP)
  for (let i = 0; i < 8; i++) await seen.clock.advance(1000)
  expect(seen.sent.length).toBe(0)
})

test('where nobody sits nothing is asked', async ($, on) => {
  const seen = beneath(on)
  await start($, false)
  await type($, 'Do it', 'sdk')
  await escape($)
  await $.classic.Stop(STOP)
  for (let i = 0; i < 3; i++) await seen.clock.advance(1000)
  expect(seen.hooks.UserPromptSubmit.reflectd_origin).toBe('sdk')
  expect(seen.sent.length + seen.run.length + seen.status.length).toBe(0)
})
