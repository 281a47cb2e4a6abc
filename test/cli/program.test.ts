import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { leaves } from '../../scripts/docs-cli.ts'
import { VERBS } from '../../src/cli/verbs.ts'
import { newHome, runCli, spawnCli } from './support.ts'

const { env } = await newHome()
const commands = await Promise.all(
  VERBS.flatMap(leaves).map(async ([words, entry]) => [words, await entry.load()] as const),
)

test('there are all the verbs', () => {
  const names = commands.map(([name]) => name)
  expect(names).toEqual(
    expect.arrayContaining(['get', 'enroll', 'run', 'agent create', 'backend add', 'audit', 'server']),
  )
  expect(names.length).toBeGreaterThan(45)
})

describe.each(commands)('%s', (name, verb) => {
  const words = name.split(' ')

  test('has examples that begin with it, and says what it prints as JSON', async () => {
    expect(verb.examples.length).toBeGreaterThan(0)
    const programs = /\b(?:mayfly|docker-credential-mayfly|terraform-credentials-mayfly)\b/
    for (const { command: line, about } of verb.examples) {
      expect(line).toMatch(programs)
      expect(about).toMatch(/^\S.*[^.]$/)
    }
    if (typeof verb.json === 'function') {
      const json = (await verb.json()) as { anyOf?: readonly object[] }
      for (const shape of json.anyOf ?? [json]) expect(shape).toHaveProperty('type')
    }
    expect(verb.description).toMatch(/\.$/)
  })

  test('--help loads, on standard output, with an example', async () => {
    const { code, stdout, stderr } = await runCli([...words, '--help'], { env })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(`Usage: mayfly ${name}`)
    expect(stdout).toContain('Examples:')
  })

  // What is passed through is for others to know.
  if (verb.passThrough !== undefined) return

  test('an unknown option is wrong usage, on one line', async () => {
    const { code, stdout, stderr } = await runCli([...words, '--no-such-option'], { env })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^mayfly: .*\.\n$/)
  })
})

describe('the frame', () => {
  test('an unknown verb gets a suggestion, as JSON where that was asked for', async () => {
    expect(await runCli(['stauts'], { env })).toEqual({
      code: 2,
      stdout: '',
      stderr: 'mayfly: "stauts" is not a command (did you mean "status"?). Run `mayfly --help` for usage.\n',
    })
    const { stderr } = await runCli(['agent', 'lss', '--json'], { env })
    expect(JSON.parse(stderr)).toEqual({
      error: {
        code: 'usage',
        message: '"lss" is not a command (did you mean "ls"?).',
        hint: 'Run `mayfly agent --help` for usage.',
      },
    })
  })

  test('--help is on standard output; without a verb it is wrong usage', async () => {
    expect(await runCli(['--help'], { env })).toMatchObject({ code: 0, stderr: '' })
    expect(await runCli([], { env })).toMatchObject({ code: 2, stdout: '' })
    expect((await runCli(['agent', '--help'], { env })).stdout).toMatch(/^Usage: mayfly agent <command>/)
    expect(await runCli(['agent'], { env })).toMatchObject({ code: 2, stdout: '' })
  })

  test('no colour where there is no terminal', async () => {
    for (const argv of [['--help'], ['get', '--help'], ['nonsense']]) {
      const { stdout, stderr } = await runCli(argv, { env })
      expect(stdout + stderr).not.toContain('\x1b')
    }
  })

  test('--version loads neither the parser nor the client', async () => {
    const loaded = await modulesOf(['--version'])
    expect(loaded.some((url) => /frame\/parse|\/client\/|node:http/.test(url))).toBe(false)
    const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'))
    expect((await runCli(['--version'], { env })).stdout).toBe(`${version}\n`)
  })

  test('get loads neither help texts, nor schemas, nor any other verb', async () => {
    const loaded = await modulesOf(['get', 'demo', '--ttl', '5m', '--server', 'http://127.0.0.1:9'])
    expect(loaded.filter((url) => url.includes('/commands/')).map((url) => url.split('/').at(-1))).toEqual([
      'get.ts',
    ])
    expect(
      loaded.filter((url) =>
        /frame\/help|typebox|\/src\/api\/|node:http|node:crypto|child_process/.test(url),
      ),
    ).toEqual([])
  })

  test('run without a proxy loads neither sockets nor anything of the proxy', async () => {
    const loaded = await modulesOf(['run', '--backend', 'demo', '--', 'true'], {
      MAYFLY_SERVER: 'http://127.0.0.1:9',
      MAYFLY_TOKEN: 'not-a-token',
    })
    expect(loaded.some((url) => url.endsWith('/run/prepare.ts'))).toBe(true)
    expect(
      loaded.filter((url) =>
        /\/src\/proxy\/|through-proxy|own-proxy-wish|serve-alone|node:(?:net|tls|https?|http2)$/.test(url),
      ),
    ).toEqual([])
  })

  /** Every module that a command line imports, as told by a hook in its process. */
  async function modulesOf(
    argv: readonly string[],
    more: Readonly<Record<string, string>> = {},
  ): Promise<string[]> {
    const hook = `import { registerHooks } from 'node:module'
      registerHooks({ load(url, context, next) { process.stderr.write('LOADED ' + url + '\\n'); return next(url, context) } })`
    const preload = `data:text/javascript,${encodeURIComponent(hook)}`
    const { stderr } = await spawnCli(argv, { env: { ...env, ...more, NODE_OPTIONS: `--import ${preload}` } })
      .ended
    const loaded = [...stderr.matchAll(/^LOADED (.*)$/gm)].map(([, url]) => url ?? '')
    expect(loaded.length).toBeGreaterThan(5)
    return loaded
  }
})
