import { execFile } from 'node:child_process'
import { lookup as systemLookup } from 'node:dns/promises'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { startDnsServer } from '../../test/support/dns-server.ts'
import { hasPrograms } from '../../test/support/needed-programs.ts'
import { createLookUp, NameNotFound } from './look-up.ts'

const run = promisify(execFile)
const NEVER = new AbortController().signal
/** Everything that `files` do not name is empty. */
const reading = (files: Readonly<Record<string, string>>) => async (path: string) => files[path] ?? ''

describe('a look-up', () => {
  it('finds both families in DNS, IPv4 first, and says how long that is true', async () => {
    await using dns = await startDnsServer(
      { 'db.test': ['2001:db8::5', '192.0.2.1', '192.0.2.2'] },
      { ttl: 7 },
    )
    const lookUp = createLookUp({ servers: [dns.address], read: reading({}) })
    const addresses = ['192.0.2.1', '192.0.2.2', '2001:db8::5']
    expect(await lookUp('db.test', NEVER)).toEqual({ addresses, ttlMs: 7_000 })
    expect(dns.asked.toSorted()).toEqual(['db.test A', 'db.test AAAA'])
  })

  it('takes what /etc/hosts says, and asks nobody', async () => {
    await using dns = await startDnsServer({ 'db.test': ['192.0.2.1'] })
    const read = reading({ '/etc/hosts': '10.0.0.1 DB.test' })
    const lookUp = createLookUp({ servers: [dns.address], read })
    expect(await lookUp('db.test', NEVER)).toMatchObject({ addresses: ['10.0.0.1'] })
    expect(dns.asked).toEqual([])
  })

  it('distinguishes a name that does not exist from one of which nobody can say', async () => {
    await using dns = await startDnsServer({ 'failing.test': 'failing', 'empty.test': [] })
    const lookUp = createLookUp({ servers: [dns.address], read: reading({}) })
    await expect(lookUp('gone.test', NEVER)).rejects.toBeInstanceOf(NameNotFound)
    await expect(lookUp('empty.test', NEVER)).rejects.toBeInstanceOf(NameNotFound)
    await expect(lookUp('failing.test', NEVER)).rejects.toMatchObject({ code: 'ESERVFAIL' })
  })

  it('stops with its signal while the name server is silent', async () => {
    await using dns = await startDnsServer({ 'db.test': 'silent' })
    const stop = new AbortController()
    const asked = dns.question()
    const looking = createLookUp({ servers: [dns.address], read: reading({}) })('db.test', stop.signal)
    await asked
    stop.abort()
    await expect(looking).rejects.toMatchObject({ code: 'ECANCELLED' })
  })

  it('asks the C library only where nsswitch.conf names more than files and DNS, and DNS has answered', async () => {
    await using dns = await startDnsServer({ 'silent.test': 'silent' })
    const asked: string[] = []
    const system = async (name: string) => {
      asked.push(name)
      return name === 'printer.local' ? ['192.0.2.7'] : []
    }
    const of = (hosts: string) =>
      createLookUp({
        servers: [dns.address],
        system,
        platform: 'linux',
        read: reading({ '/etc/nsswitch.conf': `hosts: ${hosts}` }),
      })
    await expect(of('files dns')('printer.local', NEVER)).rejects.toBeInstanceOf(NameNotFound)
    expect(asked).toEqual([])
    expect(await of('files mdns dns')('printer.local', NEVER)).toMatchObject({ addresses: ['192.0.2.7'] })
    expect(await of('files sss')('printer.local', NEVER)).toMatchObject({ addresses: ['192.0.2.7'] })
    await expect(of('files mdns dns')('gone.local', NEVER)).rejects.toBeInstanceOf(NameNotFound)
    const stop = new AbortController()
    const question = dns.question()
    const silent = of('files mdns dns')('silent.test', stop.signal)
    await question
    stop.abort()
    await expect(silent).rejects.toMatchObject({ code: 'ECANCELLED' })
    expect(asked).toEqual(['printer.local', 'printer.local', 'gone.local'])
  })

  it('lets the C library look up one name at a time, and none for a caller that has gone', async () => {
    const first = Promise.withResolvers<readonly string[]>()
    const asked: string[] = []
    const system = (name: string) => {
      asked.push(name)
      return name === 'slow.test' ? first.promise : Promise.resolve(['192.0.2.1'])
    }
    const lookUp = createLookUp({ platform: 'darwin', system })
    const slow = lookUp('slow.test', NEVER)
    const gone = lookUp('gone.test', AbortSignal.abort())
    const next = lookUp('next.test', NEVER)
    gone.catch(() => undefined)
    await new Promise(setImmediate)
    expect(asked).toEqual(['slow.test'])
    first.resolve(['192.0.2.9'])
    expect((await slow).addresses).toEqual(['192.0.2.9'])
    expect((await next).addresses).toEqual(['192.0.2.1'])
    await expect(gone).rejects.toThrow()
    expect(asked).toEqual(['slow.test', 'next.test'])
  })
})

describe.runIf(process.platform === 'linux')('compared with getaddrinfo', () => {
  it.each(['localhost', 'LOCALHOST', '127.1', '2130706433', '0x7f.1', '0177.0.0.1', '10.1.2'])(
    'finds the same for %s',
    async (name) => {
      const theirs = await systemLookup(name, { all: true, order: 'ipv4first' })
      const ours = await createLookUp()(name, NEVER)
      expect(ours.addresses).toEqual([...new Set(theirs.map(({ address }) => address))])
    },
  )

  const canMount = process.getuid?.() === 0 && hasPrograms('mount')

  it.runIf(canMount)('finds the same by search domains, ndots and /etc/hosts', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'mayfly-names-'))
    // Port 53 of an address that nobody else uses.
    const host = `127.${process.pid % 200}.53.${1 + (process.pid % 250)}`
    try {
      const files = {
        'resolv.conf': `nameserver ${host}\nsearch a.test b.test\noptions ndots:2 timeout:5 attempts:1\n`,
        hosts: '127.0.0.1 localhost\n::1 localhost\n10.0.0.8 Listed.test alias\n',
        'nsswitch.conf': 'hosts: files dns\n',
      }
      for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
      const mounts = Object.keys(files).map((name) => `mount --bind ${directory}/${name} /etc/${name}`)
      const program = join(import.meta.dirname, '../../test/support/compare-look-ups-child.ts')
      const script = [...mounts, `exec ${process.execPath} ${program} ${host}`].join(' && ')
      const { stdout } = await run('unshare', ['--mount', 'sh', '-c', script])
      const results = JSON.parse(stdout) as Record<string, { ours: unknown; theirs: unknown }>
      for (const [name, { ours, theirs }] of Object.entries(results))
        expect([name, ours]).toEqual([name, theirs])
      expect(results['db']?.ours).toEqual(['192.0.2.1'])
      expect(results['alias']?.ours).toEqual(['10.0.0.8'])
    } finally {
      rmSync(directory, { recursive: true })
    }
  })
})
