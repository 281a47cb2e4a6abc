import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openProjectFile } from './open.ts'
import { readProjectFile } from './read.ts'

let home: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'mayfly-project-'))
})
afterAll(() => rm(home, { recursive: true, force: true }))

async function read(text: string | Uint8Array) {
  await writeFile(join(home, '.mayfly.yaml'), text)
  return (await readProjectFile(await openProjectFile({ cwd: home }, '.mayfly.yaml'))).credentials
}

async function faultOf(text: string | Uint8Array): Promise<string> {
  const error = await read(text).then(
    () => undefined,
    (cause: unknown) => cause,
  )
  expect(error).toMatchObject({ name: 'CliError', exitCode: 2 })
  return (error as Error).message
}

test('reads every setting', async () => {
  const [orders, reports, plain] = await read(`
credentials:
  orders:
    backend: orders-db
    ttl: 1h30m
    scopes: [orders:read, "orders:write"]
    params: { database: orders }
    metadata: { why: nightly }
    env: { PGHOST: host, PGPASSWORD: "{{ password }}" }
    files:
      PGPASSFILE: "{{host}}:{{port}}:*:{{username}}:{{password}}"
      KEY: { name: key.pem, content: private_key }
  reports: {}
  plain:
`)
  expect(orders).toEqual({
    name: 'orders',
    request: {
      backend: 'orders-db',
      ttl: '1h30m',
      scopes: ['orders:read', 'orders:write'],
      params: { database: 'orders' },
      metadata: { why: 'nightly' },
    },
    isSpread: false,
    env: [
      { variable: 'PGHOST', value: { parts: [{ field: 'host' }] } },
      { variable: 'PGPASSWORD', value: { parts: [{ field: 'password' }] } },
    ],
    files: [
      {
        variable: 'PGPASSFILE',
        fileName: 'PGPASSFILE',
        content: {
          parts: [
            { field: 'host' },
            { text: ':' },
            { field: 'port' },
            { text: ':*:' },
            { field: 'username' },
            { text: ':' },
            { field: 'password' },
          ],
        },
      },
      { variable: 'KEY', fileName: 'key.pem', content: { parts: [{ field: 'private_key' }] } },
    ],
  })
  const everything = { isSpread: true, env: [], files: [] }
  expect(reports).toEqual({ name: 'reports', request: { backend: 'reports' }, ...everything })
  expect(plain).toEqual({ name: 'plain', request: { backend: 'plain' }, ...everything })
})

const one = (lines: string) => `credentials:\n  demo:\n${lines}`

describe('reports a mistake with its line:', () => {
  test.each([
    ['nothing', '', '.mayfly.yaml: credentials must hold'],
    ['no credentials', 'credentials: {}\n', '.mayfly.yaml:1:14: credentials must hold'],
    [
      'keys that resemble none of ours, which it does not repeat',
      'password-of-ada: x\n',
      '.mayfly.yaml:1:1: this key is not a field',
    ],
    ['a list', 'credentials: [a]\n', '.mayfly.yaml:1:14: credentials must hold'],
    ['a text', 'just words\n', '.mayfly.yaml:1:1: must contain'],
    ['no YAML', 'credentials: [\n', 'not valid YAML'],
    [
      'the same key twice',
      'credentials: { a: {} }\ncredentials: { b: {} }\n',
      '.mayfly.yaml:2:1: not valid YAML: this key appears twice',
    ],
    ['bytes that are no text', Uint8Array.of(0xff, 0xfe, 0x00), 'is not UTF-8 text'],
    ['a tag', one('    ttl: !!js/function "x"\n'), 'not valid YAML'],
    [
      'a bomb of aliases',
      `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefgh'
        .split('')
        .map((k, i) => `${k}: &${k} [${`*${'abcdefgh'[i]},`.repeat(8)}*${'abcdefgh'[i]}]`)
        .join('\n')}\n`,
      'not valid YAML',
    ],
    [
      'the configuration of a server',
      'listen: 127.0.0.1:8620\n',
      '.mayfly.yaml:1:1: this key is not a field',
    ],
    [
      'a server to be sent to',
      'server: https://evil.example\ncredentials: { demo: }\n',
      '.mayfly.yaml:1:1: this key is not a field',
    ],
    [
      'an unknown key',
      one('    scope: [a]\n'),
      '.mayfly.yaml:3:5: "scope" is not a field (did you mean "scopes"?)',
    ],
    ['a malformed name', 'credentials:\n  "a b": {}\n', '.mayfly.yaml:2:3: a name consists of letters'],
    ['text in place of a credential', 'credentials:\n  demo: yes\n', '.mayfly.yaml:2:9: demo must hold'],
    ['a backend that is a number', one('    backend: 5\n'), '.mayfly.yaml:3:14: backend must be the name'],
    ['a path for a backend', one('    backend: ../admin\n'), '.mayfly.yaml:3:14: backend must be the name'],
    ['a ttl without a unit', one('    ttl: 300\n'), '.mayfly.yaml:3:10: ttl must be a duration'],
    ['scopes that are one word', one('    scopes: a:read\n'), '.mayfly.yaml:3:13: scopes must be a list'],
    ['scopes that are numbers', one('    scopes: [1]\n'), '.mayfly.yaml:3:13: scopes must be a list'],
    ['params that are a list', one('    params: [a]\n'), '.mayfly.yaml:3:13: params must hold'],
    ['an empty env', one('    env: {}\n'), '.mayfly.yaml:3:10: env must hold'],
    ['a list of variables', one('    env: [A]\n'), '.mayfly.yaml:3:10: env must hold'],
    [
      'an invalid variable name',
      one('    env: { "A-B": token }\n'),
      '.mayfly.yaml:3:12: "A-B" is not a valid variable name',
    ],
    ['an assignment', one('    env: { "A=B": token }\n'), '"A=B" is not a valid variable name'],
    [
      'a variable that loads code',
      one('    env: { LD_PRELOAD: token }\n'),
      '.mayfly.yaml:3:12: "LD_PRELOAD" is a variable that mayfly does not set',
    ],
    [
      'the same in lower case',
      one('    env: { node_options: token }\n'),
      'is a variable that mayfly does not set',
    ],
    [
      'the search path for programs',
      one('    files: { PATH: token }\n'),
      '"PATH" is a variable that mayfly does not set',
    ],
    [
      'a home of its own',
      one('    env: { HOME: "./.h/{{ttl}}" }\n'),
      '"HOME" is a variable that mayfly does not set',
    ],
    [
      'a program run by git',
      one('    env: { GIT_SSH_COMMAND: "evil #{{token}}" }\n'),
      'is a variable that mayfly does not set',
    ],
    [
      'git settings',
      one('    files: { GIT_CONFIG_GLOBAL: token }\n'),
      'is a variable that mayfly does not set',
    ],
    [
      'a pager',
      one('    env: { PSQL_PAGER: "evil #{{token}}" }\n'),
      'is a variable that mayfly does not set',
    ],
    ['an editor', one('    env: { EDITOR: "evil #{{token}}" }\n'), 'is a variable that mayfly does not set'],
    [
      'a shell prompt',
      one('    env: { PS4: "$(evil){{token}}" }\n'),
      'is a variable that mayfly does not set',
    ],
    [
      'a variable of mayfly',
      one('    env: { MAYFLY_SERVER: token }\n'),
      'is a variable that mayfly does not set',
    ],
    ['text without a field', one('    env: { A: "no field here" }\n'), '.mayfly.yaml:3:15: must be a field'],
    ['an invalid field name', one('    env: { A: "{{ a b }}" }\n'), 'must be a field'],
    ['a number in place of a field', one('    env: { A: 1 }\n'), 'must be a field'],
    [
      'a file outside the directory',
      one('    files: { A: { name: ../x, content: token } }\n'),
      'name must be a plain file name',
    ],
    [
      'a file called ..',
      one('    files: { A: { name: "..", content: token } }\n'),
      'name must be a plain file name',
    ],
    ['a file without content', one('    files: { A: { name: x } }\n'), 'must be a field'],
    [
      'an unknown key in a file',
      one('    files: { A: { content: token, mode: 777 } }\n'),
      '.mayfly.yaml:3:35: this key is not a field',
    ],
    [
      'a variable set twice',
      one('    env: { A: token }\n    files: { A: token }\n'),
      '.mayfly.yaml:4:14: A is set twice',
    ],
    [
      'too many credentials',
      `credentials:\n${Array.from({ length: 33 }, (_, i) => `  c${i}:\n`).join('')}`,
      'there are more than 32 credentials',
    ],
    ['a prototype property', 'credentials:\n  __proto__: { backend: demo }\n', 'a name consists of letters'],
  ])('%s', async (_, text, message) => {
    expect(await faultOf(text)).toContain(message)
  })

  test('reports all mistakes together, up to a limit', async () => {
    const text = one(`${Array.from({ length: 8 }, (_, index) => `    x${index}: 1\n`).join('')}`)
    const message = await faultOf(text)
    expect(message.match(/is not a field/g)).toHaveLength(5)
    expect(message).toMatch(/; and 3 more\.$/)
    expect(message).not.toContain('\n')
  })

  test('refuses two files of the same name', async () => {
    const text = one(
      '    files:\n      A: { name: key, content: token }\n      B: { name: key, content: id }\n',
    )
    expect(await faultOf(text)).toContain('.mayfly.yaml:5:10: two files are named key')
  })
})
