import { endianness } from 'node:os'
import { describe, expect, it } from 'vitest'
import { listenerUids, peerUid, unmappedUid } from './socket-table.ts'

const HEAD =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode'
const table = (...rows: string[]) => [HEAD, ...rows, ''].join('\n')
const row = (state = '01', uid = '1000', inode = '31337', ends = '0100007F:BC8C 0100007F:2120') =>
  `   1: ${ends} ${state} 00000000:00000000 00:00000000 00000000 ${uid.padStart(5)}        0 ${inode} 1 0 20 4 30 10 -1`

describe.runIf(endianness() === 'LE')('peerUid', () => {
  const ours = {
    localAddress: '127.0.0.1',
    localPort: 0x2120,
    remoteAddress: '127.0.0.1',
    remotePort: 0xbc8c,
  }

  it('reads the row of the other end', () => {
    expect(peerUid(ours, table(row()))).toBe(1000)
    const mapped = { ...ours, remoteAddress: '::ffff:127.0.0.1', localAddress: '::ffff:127.0.0.1' }
    expect(peerUid(mapped, table(row()))).toBe(1000)
    const six = '0000000000000000FFFF00000100007F:BC8C 0000000000000000FFFF00000100007F:2120'
    expect(peerUid(ours, table(row('01', '7', '1', six)))).toBe(7)
  })

  it.each([
    ['TIME_WAIT', row('06', '0', '0')],
    ['FIN_WAIT2 of a closed end', row('05', '0', '0')],
    ['SYN_SENT', row('02', '0', '7')],
    ['an orphan shown as established', row('01', '0', '0')],
    ['a row without numbers', row('01', 'root', '7')],
    ['a cut row', row().slice(0, 50)],
  ])('does not trust %s', (_name, text) => {
    expect(peerUid(ours, table(text))).toBeUndefined()
  })

  it('does not choose between two rows, nor take our own end', () => {
    expect(peerUid(ours, table(row(), row('01', '0')))).toBeUndefined()
    const turned = { ...ours, localPort: ours.remotePort, remotePort: ours.localPort }
    expect(peerUid(turned, table(row()))).toBeUndefined()
    expect(peerUid({}, table(row()))).toBeUndefined()
  })
})

describe.runIf(endianness() === 'LE')('listenerUids', () => {
  const listener = (local: string, uid: string, state = '0A') =>
    row(state, uid, '5', `${local} ${'0'.repeat(local.length - 5)}:0000`)
  const V6_ALL = '0'.repeat(32)
  const find = (address: string, ...rows: string[]) => listenerUids(address, 0x21ac, table(...rows))

  it.each([
    ['127.0.0.1', listener('0100007F:21AC', '7')],
    ['127.0.0.1', listener('00000000:21AC', '7')],
    ['127.0.0.1', listener(`${V6_ALL}:21AC`, '7')],
    ['::ffff:127.0.0.1', listener('0100007F:21AC', '7')],
    ['::1', listener(`${V6_ALL}:21AC`, '7')],
    ['::1', listener('00000000000000000000000001000000:21AC', '7')],
  ])('finds the listener of a connection to %s', (address, text) => {
    expect(find(address, text)).toEqual([7])
  })

  it.each([
    ['another port', '127.0.0.1', listener('0100007F:21AD', '7')],
    ['another address', '127.0.0.1', listener('0200007F:21AC', '7')],
    ['a connection', '127.0.0.1', listener('0100007F:21AC', '7', '01')],
    ['all IPv4 addresses, for IPv6', '::1', listener('00000000:21AC', '7')],
  ])('takes no listener on %s', (_what, address, text) => {
    expect(find(address, text)).toEqual([])
  })

  it('prefers the address itself to all addresses, and names each user that shares it', () => {
    const exact = listener('0100007F:21AC', '7')
    expect(find('127.0.0.1', listener(`${V6_ALL}:21AC`, '9'), exact)).toEqual([7])
    expect(find('127.0.0.1', listener('0100007F:21AC', '9'), exact)).toEqual([9, 7])
    expect(find('127.0.0.1', listener('0100007F:21AC', 'x'))).toEqual([undefined])
  })
})

describe('unmappedUid', () => {
  it.each([
    ['the host', '         0          0 4294967295\n', undefined],
    ['two maps that cover all', '0 0 1000\n1000 1000 4294966295\n', undefined],
    ['a container', '         0     100000      65536\n', 65_534],
    ['one user', '1000 1000 1\n', 65_534],
    ['no map', '', 65_534],
  ])('of %s', (_what, map, uid) => {
    expect(unmappedUid(map, '65534\n')).toBe(uid)
  })

  it('is what the kernel says', () => {
    expect(unmappedUid('', '99\n')).toBe(99)
    expect(unmappedUid('', '')).toBe(65_534)
  })
})
