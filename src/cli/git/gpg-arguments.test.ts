import { describe, expect, test } from 'vitest'
import { isKey, readGpgArguments, sigCreatedLine } from './gpg-arguments.ts'

const KEY = '0123456789ABCDEF'

describe('a call of gpg', () => {
  test.each([
    ['as git 2.39 does', ['--status-fd=2', '-bsau', KEY], 2],
    ['with the fd apart', ['--status-fd', '2', '-bsau', KEY], 2],
    ['in another order', ['-sabu', KEY, '--status-fd=1'], 1],
    ['with the key at the letter', ['-bsa', `-u${KEY}`], undefined],
    ['with long names', ['--detach-sign', '--armor', `--local-user=${KEY}`], undefined],
    ['in a batch', ['--batch', '--no-tty', '--status-fd=2', '-bsau', KEY], 2],
  ])('to sign, %s', (_name, argv, statusFd) => {
    expect(readGpgArguments(argv)).toEqual({ kind: 'sign', keyId: KEY, statusFd })
  })

  test.each([
    [['--keyid-format=long', '--status-fd=1', '--verify', '/tmp/x', '-']],
    [['--verify', '-']],
    [['--list-keys']],
    [['--version']],
    [['-d', 'file']],
    [['-bsau', KEY, 'file']],
    [['-bsa', '--clearsign']],
    [['--export-secret-keys']],
    [[]],
    [['-s', '-u', KEY]],
    [['-bs', '-u', KEY]],
  ])('goes to the real gpg: %j', (argv) => {
    expect(readGpgArguments(argv)).toEqual({ kind: 'other' })
  })
})

test('matches a key by the end of its fingerprint', () => {
  const fingerprint = `FFFFFFFFFFFFFFFFFFFFFFFF${KEY}`
  for (const asked of [KEY, KEY.toLowerCase(), `0x${KEY}`, `${KEY}!`, KEY.slice(-8), fingerprint])
    expect(isKey(asked, fingerprint), asked).toBe(true)
  for (const asked of ['', KEY.slice(-7), KEY.slice(0, 8), `0${KEY}`, 'ci <ci@example.com>', '!'])
    expect(isKey(asked, fingerprint), asked).toBe(false)
})

test('the status line carries the whole seconds and the fingerprint', () => {
  const line = sigCreatedLine('ABCD', 1_760_000_000_999)
  expect(line).toBe('\n[GNUPG:] SIG_CREATED D 22 10 00 1760000000 ABCD\n')
})
