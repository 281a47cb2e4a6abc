import { lookup as systemLookup } from 'node:dns/promises'
import { isDeepStrictEqual } from 'node:util'
import { createLookUp } from '../../src/egress/look-up.ts'
import { startDnsServer } from './dns-server.ts'

/** Prints what Mayfly and getaddrinfo find for the same names, by the files in /etc and a name server at the address given. */

const NAMES = [
  ...['db', 'deep', 'deep.x', 'whole.test', 'both.x.test', 'v6', 'mixed', 'gone', 'gone.x.y'],
  ...[
    'empty',
    'failing',
    'db.',
    'whole.test.',
    'failing.test',
    'tld',
    'listed.test',
    'alias',
    'localhost',
    'shadow',
  ],
]

const dns = await startDnsServer(
  {
    'db.a.test': ['192.0.2.1'],
    'deep.x.b.test': ['192.0.2.2'],
    'whole.test': ['192.0.2.3'],
    'whole.test.a.test': ['192.0.2.4'],
    'both.x.test': ['192.0.2.5', '2001:db8::5'],
    'both.x.test.a.test': ['192.0.2.6'],
    'v6.b.test': ['2001:db8::6'],
    'mixed.b.test': ['2001:db8::7', '192.0.2.7'],
    'empty.a.test': [],
    'empty.b.test': ['192.0.2.8'],
    'failing.a.test': 'failing',
    'failing.b.test': ['192.0.2.9'],
    'failing.test': 'failing',
    tld: ['192.0.2.10'],
    'shadow.a.test': ['192.0.2.11'],
    shadow: ['192.0.2.12'],
  },
  { host: process.argv[2]!, port: 53 },
)

async function found(addresses: Promise<readonly string[]>): Promise<readonly string[] | 'none'> {
  return addresses.catch(() => 'none')
}

const lookUp = createLookUp()
async function compare(name: string) {
  // Together: either may be the first that fails.
  const [theirs, ours] = await Promise.all([
    found(
      systemLookup(name, { all: true, order: 'ipv4first' }).then((all) => [
        ...new Set(all.map(({ address }) => address)),
      ]),
    ),
    found(lookUp(name, AbortSignal.timeout(10_000)).then(({ addresses }) => addresses)),
  ])
  return { theirs, ours }
}
const results: Record<string, { ours: unknown; theirs: unknown }> = {}
for (const name of NAMES) {
  // Each of the two gives up on a question after a time, and so does not say the same on a machine that stands still for that.
  for (let tries = 3; tries > 0; tries -= 1) {
    results[name] = await compare(name)
    if (isDeepStrictEqual(results[name].ours, results[name].theirs)) break
  }
}
console.log(JSON.stringify(results))
await dns[Symbol.asyncDispose]()
