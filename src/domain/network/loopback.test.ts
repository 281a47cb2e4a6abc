import { expect, test } from 'vitest'
import { isLoopbackAddress, isLoopbackHost } from './loopback.ts'

test('tells the addresses of this machine from others', () => {
  expect(['::1', '127.0.0.1', '::ffff:127.1.2.3'].filter((one) => !isLoopbackAddress(one))).toEqual([])
  const others = [
    undefined,
    '',
    '::',
    '::2',
    '0.0.0.0',
    '10.0.0.1',
    '::ffff:10.0.0.1',
    '1127.0.0.1',
    'localhost',
  ]
  expect(others.filter((one) => isLoopbackAddress(one))).toEqual([])
})

test('tells the host names of this machine, as a URL has them, from others', () => {
  const hostOf = (url: string) => new URL(url).hostname
  const ours = [
    'http://localhost',
    'http://LOCALHOST:1',
    'http://127.1',
    'http://127.255.0.9',
    'http://[::1]:8620',
  ]
  expect(ours.filter((url) => !isLoopbackHost(hostOf(url)))).toEqual([])
  const others = [
    'localhost.example.com',
    'a.localhost',
    '127.0.0.1.example.com',
    '10.0.0.1',
    '[::2]',
    '[::]',
    '0.0.0.0',
  ]
  expect(others.filter((host) => isLoopbackHost(hostOf(`http://${host}`)))).toEqual([])
})
