import { describe, expect, it } from 'vitest'
import { isPermitted, resolveChecked } from './address.ts'
import { createResolver } from './resolver.ts'

const lookup = createResolver().addresses

const FORBIDDEN = [
  '127.0.0.1',
  '127.255.255.254',
  '169.254.1.1',
  '::1',
  '0:0:0:0:0:0:0:1',
  'fe80::1',
  'fe80::1%eth0',
  'fc00::1',
  'fdff::1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::127.0.0.1',
  '64:ff9b::7f00:1',
  '2002:7f00:1::',
  '::ffff:0:127.0.0.1',
  '0000:0000:0000:0000:0000:ffff:7f00:0001',
  'fec0::1',
  'febf::1%25',
  '2002:a9fe:101::1',
  '64:ff9b::127.0.0.1',
  '2001:db8::5efe:127.0.0.1',
  '2001:db8::200:5efe:127.0.0.1',
]
const NEVER = [
  '169.254.169.254',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '64:ff9b::a9fe:a9fe',
  '2002:a9fe:a9fe::',
  'fd00:ec2::254',
  '100.100.100.200',
  '0.0.0.0',
  '::',
  '::ffff:0.0.0.0',
  '224.0.0.1',
  '255.255.255.255',
  'ff02::1',
  'nonsense',
  '',
  '168.63.129.16',
  '192.0.0.192',
  '169.254.170.2',
  '169.254.170.23',
  'fd00:ec2::23',
  'fd20:ce::254',
  'fd20:0ce:0:0:0:0:0:254',
  'fe80::a9fe:a9fe',
  'fe80::a9fe:a9fe%eth0',
  'fe80::5efe:169.254.169.254',
  'fe80::200:5efe:169.254.169.254',
  '2001:db8::5efe:168.63.129.16',
  '::ffff:168.63.129.16',
  '::169.254.170.23',
  '::ffff:0:169.254.170.23',
  '64:ff9b::192.0.0.192',
  '2002:a83f:8110::1',
  '64:ff9b:1::1',
  '64:ff9b:1::169.254.169.254',
  '2001:0:4136:e378:8000:63bf:3fff:fdd2',
  '2001::1',
  '127.1',
  '0177.0.0.1',
  '2130706433',
  '2002:e000:1::',
]

describe('the addresses of upstreams', () => {
  it.each(FORBIDDEN)('permits %s only for backends marked local', (address) => {
    expect(isPermitted(address, false)).toBe(false)
    expect(isPermitted(address, true)).toBe(true)
  })

  it.each(NEVER)('permits %s for no backend', (address) => {
    expect(isPermitted(address, false)).toBe(false)
    expect(isPermitted(address, true)).toBe(false)
  })

  it.each([
    '8.8.8.8',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.1.1',
    '2606:4700::1',
    '::ffff:10.0.0.1',
    '64:ff9b::808:808',
    '2001:db8::5efe:8.8.8.8',
    '2001:4860:4860::8888',
  ])('permits %s for every backend', (address) => {
    expect(isPermitted(address, false)).toBe(true)
  })

  it('resolves once, and refuses a name with one forbidden address', async () => {
    let asked = 0
    const lookup = async () => {
      asked += 1
      return ['8.8.8.8', '1.1.1.1']
    }
    expect(await resolveChecked('up.test', { local: false, lookup })).toBe('8.8.8.8')
    expect(asked).toBe(1)
    const mixed = async () => ['8.8.8.8', '127.0.0.1']
    await expect(resolveChecked('up.test', { local: false, lookup: mixed })).rejects.toMatchObject({
      fault: 'misconfigured',
    })
  })

  it.each(['127.0.0.1', '127.1', '2130706433', '0x7f.1', '[::1]', 'localhost'])(
    'refuses %s',
    async (name) => {
      await expect(resolveChecked(name, { local: false, lookup })).rejects.toMatchObject({
        fault: 'misconfigured',
      })
    },
  )

  it('reports a name without an address', async () => {
    const none = async () => []
    await expect(resolveChecked('x.test', { local: false, lookup: none })).rejects.toMatchObject({
      fault: 'unavailable',
    })
    await expect(resolveChecked('x.invalid', { local: false, lookup })).rejects.toMatchObject({
      fault: 'unavailable',
    })
  })
})
