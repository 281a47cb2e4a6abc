import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readProjectFile } from './read.ts'

let home: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'mayfly-project-'))
})
afterAll(() => rm(home, { recursive: true, force: true }))

async function read(text: string | Uint8Array) {
  const path = join(home, 'mayfly.yaml')
  await writeFile(path, text)
  return readProjectFile(path, 'mayfly.yaml')
}

async function faultOf(text: string | Uint8Array): Promise<string> {
  const error = await read(text).then(
    () => undefined,
    (cause: unknown) => cause,
  )
  expect(error).toMatchObject({ name: 'CliError', exitCode: 2 })
  return (error as Error).message
}

test('everything that can be said', async () => {
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

describe('what is wrong is told with its line', () => {
  test.each([
    ['nothing', '', 'mayfly.yaml: credentials must hold'],
    ['no credentials', 'credentials: {}\n', 'mayfly.yaml:1:14: credentials must hold'],
    ['a list', 'credentials: [a]\n', 'mayfly.yaml:1:14: credentials must hold'],
    ['a text', 'just words\n', 'mayfly.yaml:1:1: must contain'],
    ['no YAML', 'credentials: [\n', 'not valid YAML'],
    [
      'the same key twice',
      'credentials: { a: {} }\ncredentials: { b: {} }\n',
      'mayfly.yaml:2:1: not valid YAML: this key appears twice',
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
    ['the configuration of a server', 'listen: 127.0.0.1:8620\n', 'mayfly.yaml:1:1: "listen" is not a field'],
    [
      'a server to be sent to',
      'server: https://evil.example\ncredentials: { demo: }\n',
      'mayfly.yaml:1:1: "server" is not a field',
    ],
    [
      'an unknown key',
      one('    scope: [a]\n'),
      'mayfly.yaml:3:5: "scope" is not a field (did you mean "scopes"?)',
    ],
    ['a name of another shape', 'credentials:\n  "a b": {}\n', 'mayfly.yaml:2:3: a name has letters'],
    ['a text for a credential', 'credentials:\n  demo: yes\n', 'mayfly.yaml:2:9: demo must hold'],
    ['a backend that is a number', one('    backend: 5\n'), 'mayfly.yaml:3:14: backend must be the name'],
    ['a path for a backend', one('    backend: ../admin\n'), 'mayfly.yaml:3:14: backend must be the name'],
    ['a ttl without a unit', one('    ttl: 300\n'), 'mayfly.yaml:3:10: ttl must be a duration'],
    ['scopes that are one word', one('    scopes: a:read\n'), 'mayfly.yaml:3:13: scopes must be a list'],
    ['scopes that are numbers', one('    scopes: [1]\n'), 'mayfly.yaml:3:13: scopes must be a list'],
    ['params that are a list', one('    params: [a]\n'), 'mayfly.yaml:3:13: params must hold'],
    ['an empty env', one('    env: {}\n'), 'mayfly.yaml:3:10: env must hold'],
    ['a list of variables', one('    env: [A]\n'), 'mayfly.yaml:3:10: env must hold'],
    [
      'no name of a variable',
      one('    env: { "A-B": token }\n'),
      'mayfly.yaml:3:12: "A-B" is not the name of a variable',
    ],
    ['an assignment', one('    env: { "A=B": token }\n'), '"A=B" is not the name of a variable'],
    [
      'a variable that loads code',
      one('    env: { LD_PRELOAD: token }\n'),
      'mayfly.yaml:3:12: "LD_PRELOAD" is a variable that is not given',
    ],
    ['one in lower case', one('    env: { node_options: token }\n'), 'is a variable that is not given'],
    ['a path of programs', one('    files: { PATH: token }\n'), '"PATH" is a variable that is not given'],
    [
      'a program of git',
      one('    env: { GIT_SSH_COMMAND: "evil #{{token}}" }\n'),
      'is a variable that is not given',
    ],
    ['settings of git', one('    files: { GIT_CONFIG_GLOBAL: token }\n'), 'is a variable that is not given'],
    ['a pager', one('    env: { PSQL_PAGER: "evil #{{token}}" }\n'), 'is a variable that is not given'],
    ['an editor', one('    env: { EDITOR: "evil #{{token}}" }\n'), 'is a variable that is not given'],
    ['what a shell prints', one('    env: { PS4: "$(evil){{token}}" }\n'), 'is a variable that is not given'],
    ['a variable of ours', one('    env: { MAYFLY_SERVER: token }\n'), 'is a variable that is not given'],
    [
      'a text without a field',
      one('    env: { A: "no field here" }\n'),
      'mayfly.yaml:3:15: must name a field',
    ],
    ['a field that is none', one('    env: { A: "{{ a b }}" }\n'), 'must name a field'],
    ['a number for a field', one('    env: { A: 1 }\n'), 'must name a field'],
    [
      'a file outside',
      one('    files: { A: { name: ../x, content: token } }\n'),
      'name must be a plain file name',
    ],
    [
      'a file called ..',
      one('    files: { A: { name: "..", content: token } }\n'),
      'name must be a plain file name',
    ],
    ['a file without content', one('    files: { A: { name: x } }\n'), 'must name a field'],
    [
      'an unknown key of a file',
      one('    files: { A: { content: token, mode: 777 } }\n'),
      '"mode" is not a field',
    ],
    [
      'a variable twice',
      one('    env: { A: token }\n    files: { A: token }\n'),
      'mayfly.yaml:4:14: A is given twice',
    ],
    [
      'too many',
      `credentials:\n${Array.from({ length: 33 }, (_, i) => `  c${i}:\n`).join('')}`,
      'there are more than 32 credentials',
    ],
    ['a prototype', 'credentials:\n  __proto__: { backend: demo }\n', 'a name has letters'],
  ])('%s', async (_, text, message) => {
    expect(await faultOf(text)).toContain(message)
  })

  test('all of it together, cut where it is a lot', async () => {
    const text = one(`${Array.from({ length: 8 }, (_, index) => `    x${index}: 1\n`).join('')}`)
    const message = await faultOf(text)
    expect(message.match(/is not a field/g)).toHaveLength(5)
    expect(message).toMatch(/; and 3 more\.$/)
    expect(message).not.toContain('\n')
  })

  test('two files of one name are two files', async () => {
    const text = one(
      '    files:\n      A: { name: key, content: token }\n      B: { name: key, content: id }\n',
    )
    expect(await faultOf(text)).toContain('mayfly.yaml:5:10: there are two files of the name key')
  })
})

test.each([
  ['is not there', 'nowhere.yaml', 'the file "nowhere.yaml" does not exist'],
  ['is a directory', '.', 'is a directory'],
  ['never ends', '/dev/zero', 'is a directory'],
])('a file that %s', async (_, name, message) => {
  const error = await readProjectFile(join(name.startsWith('/') ? '' : home, name), name).catch(
    (cause: unknown) => cause,
  )
  expect((error as Error).message).toContain(message)
})
