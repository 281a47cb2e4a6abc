import { describe, expect, test } from 'vitest'
import { isKey, readGpgArguments, sigCreatedLine } from './gpg-arguments.ts'

const KEY = '0123456789ABCDEF'

describe('what git asks of gpg', () => {
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
  ])('something else: %j', (argv) => {
    expect(readGpgArguments(argv)).toEqual({ kind: 'other' })
  })
})

test('a key is known by its end', () => {
  const fingerprint = `FFFFFFFFFFFFFFFFFFFFFFFF${KEY}`
  for (const asked of [KEY, KEY.toLowerCase(), `0x${KEY}`, `${KEY}!`, KEY.slice(-8), fingerprint])
    expect(isKey(asked, fingerprint), asked).toBe(true)
  for (const asked of ['', KEY.slice(-7), KEY.slice(0, 8), `0${KEY}`, 'ci <ci@example.com>', '!'])
    expect(isKey(asked, fingerprint), asked).toBe(false)
})

test('the line that git waits for names the algorithms of the signature', () => {
  const armor = (...bytes: number[]) =>
    `-----BEGIN PGP SIGNATURE-----\n\n${Buffer.from(bytes).toString('base64')}\n=abcd\n-----END PGP SIGNATURE-----\n`
  const line = (...bytes: number[]) => sigCreatedLine(armor(...bytes), 'ABCD', 1_760_000_000_999)
  expect(line(0xc2, 10, 4, 0, 22, 8)).toBe('\n[GNUPG:] SIG_CREATED D 22 8 00 1760000000 ABCD\n')
  expect(line(0xc2, 193, 10, 4, 0, 1, 10)).toContain(' D 1 10 00 ')
  expect(line()).toContain(' D 22 10 00 ')
})
