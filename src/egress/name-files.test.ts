import { describe, expect, it } from 'vitest'
import { addressesInHosts, candidatesOf, searchOf, sourcesOf } from './name-files.ts'

describe('/etc/hosts', () => {
  const text = [
    '# 192.0.2.9 commented',
    '127.0.0.1\tlocalhost  DB.test # and 10.0.0.9 ignored.test',
    '::1 localhost',
    '10.0.0.2 other.test db.test',
    'nonsense bad.test',
    '10.0.0.3',
  ].join('\n')

  it.each([
    ['localhost', ['127.0.0.1', '::1']],
    ['db.test', ['127.0.0.1', '10.0.0.2']],
    ['dB.tEst', ['127.0.0.1', '10.0.0.2']],
    ['commented', []],
    ['ignored.test', []],
    ['bad.test', []],
    ['10.0.0.3', []],
  ])('has the addresses of %s', (name, addresses) => {
    expect(addressesInHosts(text, name)).toEqual(addresses)
  })
})

describe('/etc/resolv.conf', () => {
  it.each([
    ['', 'host', { domains: [], ndots: 1 }],
    ['', 'host.example.com', { domains: ['example.com'], ndots: 1 }],
    ['search a.test b.test.\n', 'host.example.com', { domains: ['a.test', 'b.test'], ndots: 1 }],
    ['search a.test\ndomain c.test d.test', 'host', { domains: ['c.test'], ndots: 1 }],
    ['search .\noptions rotate ndots:5 # x', 'host', { domains: [''], ndots: 5 }],
    ['#search a.test\n;search b.test\noptions ndots:99', 'host', { domains: [], ndots: 15 }],
  ])('%j says what is searched', (text, ownName, search) => {
    expect(searchOf(text, ownName)).toEqual(search)
  })

  it.each([
    ['db', 1, ['db.a.test', 'db.b.test', 'db']],
    ['db.x', 1, ['db.x', 'db.x.a.test', 'db.x.b.test']],
    ['db.x', 2, ['db.x.a.test', 'db.x.b.test', 'db.x']],
    ['db.', 5, ['db']],
    ['db', 0, ['db', 'db.a.test', 'db.b.test']],
  ])('%s with ndots %i is tried in the order of the C library', (name, ndots, names) => {
    expect(candidatesOf(name, { domains: ['a.test', 'b.test'], ndots })).toEqual(names)
  })
})

describe('/etc/nsswitch.conf', () => {
  it.each([
    ['', { dns: true, others: false }],
    ['passwd: sss\nhosts: files dns\n', { dns: true, others: false }],
    ['hosts:          files mdns4_minimal [NOTFOUND=return] dns', { dns: true, others: true }],
    ['hosts: files myhostname resolve [!UNAVAIL=return] dns', { dns: true, others: true }],
    ['#hosts: files nis\nhosts: files # dns', { dns: false, others: false }],
  ])('%j says who is asked', (text, sources) => {
    expect(sourcesOf(text)).toEqual(sources)
  })
})
