import { describe, expect, test } from 'vitest'
import { readListen, readOwnWish } from './own-proxy-wish.ts'
import { readProjectProxy, readTunnel, settingsOf } from './proxy-wish.ts'
import type { Faults } from './shape.ts'

function reading() {
  const said: string[] = []
  const faults = {
    add: (_path: unknown, text: string) => said.push(text),
    unknownKeys: (_path: unknown, given: object, known: readonly string[]) =>
      said.push(...Object.keys(given).filter((key) => !known.includes(key))),
  } as unknown as Faults
  return { faults, said }
}

const own = (given: object) => {
  const { faults, said } = reading()
  const wish = readOwnWish(faults, given as never)
  return { wish, said }
}

describe('the settings of a proxy', () => {
  test('are the careful ones where nothing is said', () => {
    expect(settingsOf(undefined, {})).toEqual({
      ...{ others: 'inspect', tunnel: [], onMisuse: 'refuse', idleMs: 600_000 },
      ...{ listen: { host: '127.0.0.1', port: 0 }, uids: undefined },
    })
  })

  test.each([
    [undefined, undefined],
    [false, undefined],
    [true, {}],
    [null, {}],
    [
      { others: 'refuse', tunnel: ['*.Example.com'] },
      { others: 'refuse', tunnel: ['*.example.com'] },
    ],
  ])('proxy: %j in a .mayfly.yaml', (given, wanted) => {
    const { faults, said } = reading()
    expect(readProjectProxy(faults, ['proxy'], given)).toEqual(wanted)
    expect(said).toEqual([])
  })

  test.each([['yes'], [1], [[]], ['inspect']])('proxy: %j is a mistake', (given) => {
    const { faults, said } = reading()
    readProjectProxy(faults, ['proxy'], given)
    expect(said).toEqual(['proxy must be true, or hold "key: value" lines'])
  })

  test('of a project are not where it listens or who may connect: whoever writes the repository must not say', () => {
    const { faults, said } = reading()
    expect(readProjectProxy(faults, ['proxy'], { listen: '0.0.0.0', uids: 'any', env_file: '/x' })).toEqual(
      {},
    )
    expect(said).toEqual(['listen', 'uids', 'env_file'])
  })

  test.each([
    ['others', 'allow'],
    ['others', ['inspect']],
    ['others', 'toString'],
    ['on_misuse', 'ignore'],
    ['on_misuse', null],
    ['idle_timeout', '0s'],
    ['idle_timeout', '25h'],
    ['idle_timeout', 600],
    ['idle_timeout', '1e3s'],
    ['tunnel', 'example.com'],
    ['tunnel', ['*']],
    ['tunnel', ['*.*.example.com']],
    ['tunnel', ['a*.example.com']],
    ['tunnel', ['example.com:443']],
    ['tunnel', ['example.com/']],
    ['tunnel', ['exa mple.com']],
    ['tunnel', ['example.com\n']],
    ['tunnel', ['.example.com']],
    ['tunnel', ['example..com']],
    ['tunnel', [{}]],
    ['tunnel', Array.from({ length: 257 }, () => 'a.example')],
    ['listen', '127.0.0.1:65536'],
    ['listen', '127.0.0.1:-1'],
    ['listen', '127.0.0.1:'],
    ['listen', 'example.com:80'],
    ['listen', '127.1'],
    ['listen', '[::1'],
    ['listen', 3128],
    ['listen', ''],
    ['uids', []],
    ['uids', '1000'],
    ['uids', ['any']],
    ['uids', [-1]],
    ['uids', [1.5]],
    ['uids', ['1000']],
    ['uids', [4_294_967_295]],
    ['uids', [Number.NaN]],
    ['uids', Array.from({ length: 65 }, (_, uid) => uid)],
  ])('%s: %j is refused', (key, value) => {
    const { wish, said } = own({ [key]: value })
    expect(said).toHaveLength(1)
    expect(said[0]).toContain(key)
    expect(Object.keys(wish)).toEqual([])
  })

  test.each([
    ['127.0.0.1', { host: '127.0.0.1', port: 0 }],
    ['localhost:3128', { host: '127.0.0.1', port: 3_128 }],
    ['::1', { host: '::1', port: 0 }],
    ['[::1]:3128', { host: '::1', port: 3_128 }],
    ['127.0.0.2:1', { host: '127.0.0.2', port: 1 }],
  ])('listen: %s', (text, wanted) => {
    expect(readListen(text)).toEqual(wanted)
  })

  test('a name to tunnel is compared without its case', () => {
    expect(readTunnel(['API.example.com', '*.b.example'])).toEqual(['api.example.com', '*.b.example'])
  })
})
