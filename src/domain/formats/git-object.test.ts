import { describe, expect, test } from 'vitest'
import { MAX_SIGN_BYTES } from '../limits.ts'
import { requireIdentity, type SigningIdentity } from '../signing-identity.ts'
import { readGitObject, type SigningPurpose } from './git-object.ts'

const A = 'a'.repeat(40)
const B = 'b'.repeat(40)
const ME = 'ci <ci@agents.example>'
const AT = '1760000000 +0200'
const COMMIT = [`tree ${A}`, `parent ${B}`, `author ${ME} ${AT}`, `committer ${ME} ${AT}`]
const TAG = [`object ${A}`, 'type commit', 'tag v1.0', `tagger ${ME} ${AT}`]
const MERGETAG = [
  `mergetag object ${B}`,
  ' type commit',
  ' tag v2',
  ' tagger Somebody Else <else@example.com> 1 +0000',
  ' ',
  ' Their tag',
  ' -----BEGIN PGP SIGNATURE-----',
  ' ',
  ' abc',
  ' -----END PGP SIGNATURE-----',
]

const text = (headers: readonly string[], message = 'Subject\n') => `${headers.join('\n')}\n\n${message}`
const bytes = (value: string) => Buffer.from(value, 'utf8')
const read = (value: string | Uint8Array, purpose: SigningPurpose = 'git-commit') =>
  readGitObject(typeof value === 'string' ? bytes(value) : value, purpose)
/** The headers with the one of this name replaced by others. */
const swap = (headers: readonly string[], name: string, ...by: string[]) =>
  headers.flatMap((line) => (line.startsWith(`${name} `) ? by : [line]))

describe('a commit', () => {
  test('gives its tree, author and committer', () => {
    const person = { name: 'ci', email: 'ci@agents.example' }
    expect(read(text(COMMIT))).toEqual({ target: A, author: person, committer: person })
  })

  test.each([
    ['the first of a branch', text(swap(COMMIT, 'parent'))],
    ['a merge', text(swap(COMMIT, 'parent', `parent ${B}`, `parent ${A}`))],
    ['a merge of a signed tag', text([...COMMIT, ...MERGETAG])],
    ['a merge of two signed tags', text([...COMMIT, ...MERGETAG, ...MERGETAG])],
    ['an empty message', text(COMMIT, '')],
    ['a message of many paragraphs', text(COMMIT, 'a\n\nb\n\nauthor x <y> 1 +0000\n')],
    ['a message with CRLF', text(COMMIT, 'a\r\n\r\nb\r\n')],
    ['a message with letters beyond ASCII', text(COMMIT, 'Größe 😀\n')],
    ['an author beyond ASCII', text(swap(COMMIT, 'author', `author Zoë À <zoë@example.com> ${AT}`))],
    ['object ids of SHA-256', text(COMMIT).replaceAll(A, 'a'.repeat(64)).replaceAll(B, 'b'.repeat(64))],
    ['a time before 2001', text(swap(COMMIT, 'author', `author ${ME} 0 -0000`))],
    ['just the most bytes', text(COMMIT, 'x'.repeat(MAX_SIGN_BYTES - text(COMMIT, '').length))],
  ])('may be %s', (_name, value) => {
    expect(read(value).target).toMatch(/^a+$/)
  })

  test('in another encoding of ASCII may have any bytes', () => {
    const value = Buffer.concat([
      bytes(`${[...COMMIT, 'encoding ISO-8859-1'].join('\n')}\n\n`),
      Buffer.from([0xe9]),
    ])
    expect(read(value).target).toBe(A)
  })

  test.each<[string, string | Uint8Array]>([
    ['nothing', ''],
    ['a text', 'I owe you 1000.\n'],
    ['a text with blank lines', 'Contract\n\nI owe you 1000.\n'],
    ['a tag', text(TAG)],
    ['a push certificate', `certificate version 0.1\npusher ${ME} ${AT}\n\n${A} ${B} refs/heads/main\n`],
    ['headers without an end', COMMIT.join('\n')],
    ['headers that begin with a blank line', `\n${text(COMMIT)}`],
    ['no tree', text(swap(COMMIT, 'tree'))],
    ['two trees', text(swap(COMMIT, 'tree', `tree ${A}`, `tree ${B}`))],
    ['a short tree', text(swap(COMMIT, 'tree', 'tree abc'))],
    ['a tree in capitals', text(swap(COMMIT, 'tree', `tree ${A.toUpperCase()}`))],
    ['a tree with something behind', text(swap(COMMIT, 'tree', `tree ${A} x`))],
    ['ids of two lengths', text(swap(COMMIT, 'parent', `parent ${'b'.repeat(64)}`))],
    ['a malformed parent', text(swap(COMMIT, 'parent', `parent ${B}\t`))],
    ['a parent after the author', text([...swap(COMMIT, 'parent'), `parent ${B}`])],
    ['too many parents', text(swap(COMMIT, 'parent', ...Array(257).fill(`parent ${B}`)))],
    ['no author', text(swap(COMMIT, 'author'))],
    ['no committer', text(swap(COMMIT, 'committer'))],
    ['two authors', text(swap(COMMIT, 'author', `author ${ME} ${AT}`, `author Eve <e@x.example> ${AT}`))],
    ['two committers', text([...COMMIT, `committer ${ME} ${AT}`])],
    ['committer before author', text([`tree ${A}`, `committer ${ME} ${AT}`, `author ${ME} ${AT}`])],
    ['a header in capitals', text(swap(COMMIT, 'author', `Author ${ME} ${AT}`))],
    ['a header indented', text(swap(COMMIT, 'author', ` author ${ME} ${AT}`))],
    ['a header with a tab', text(swap(COMMIT, 'author', `author\t${ME} ${AT}`))],
    ['an author that continues', text(swap(COMMIT, 'author', `author ${ME} ${AT}`, ' continued'))],
    ['a parent that continues', text(swap(COMMIT, 'parent', `parent ${B}`, ` ${A}`))],
    ['an author without a name', text(swap(COMMIT, 'author', `author <ci@agents.example> ${AT}`))],
    ['an author without an e-mail', text(swap(COMMIT, 'author', `author ci <> ${AT}`))],
    ['an author without a time', text(swap(COMMIT, 'author', `author ${ME}`))],
    ['an author with two e-mails', text(swap(COMMIT, 'author', `author ci <a@b> <c@d> ${AT}`))],
    ['an author with a bracket in the name', text(swap(COMMIT, 'author', `author c>i <a@b> ${AT}`))],
    ['a time with a fraction', text(swap(COMMIT, 'author', `author ${ME} 1.5 +0200`))],
    ['a time below zero', text(swap(COMMIT, 'author', `author ${ME} -1 +0200`))],
    ['a time beyond counting', text(swap(COMMIT, 'author', `author ${ME} ${'9'.repeat(13)} +0200`))],
    ['a zone in words', text(swap(COMMIT, 'author', `author ${ME} 1 UTC`))],
    ['something behind the zone', text(swap(COMMIT, 'author', `author ${ME} ${AT} x`))],
    ['an escape in a name', text(swap(COMMIT, 'author', `author \u001b[2Jci <a@b> ${AT}`))],
    ['a DEL in a name', text(swap(COMMIT, 'author', `author ci\u007f <a@b> ${AT}`))],
    ['an endless name', text(swap(COMMIT, 'author', `author ${'x'.repeat(513)} <a@b> ${AT}`))],
    ['headers with CRLF', text(COMMIT).replaceAll('\n', '\r\n')],
    ['one header with CRLF', text(COMMIT).replace(`${AT}\n`, `${AT}\r\n`)],
    ['a NUL in the message', text(COMMIT, 'a\0b')],
    ['a NUL in a header', text(swap(COMMIT, 'author', `author c\0i <a@b> ${AT}`))],
    ['a NUL behind all', `${text(COMMIT)}\0`],
    ['the header of a loose object', `commit 12\0${text(COMMIT)}`],
    ['a signature', text([...COMMIT, 'gpgsig -----BEGIN PGP SIGNATURE-----', ' x'])],
    ['a signature for SHA-256', text([...COMMIT, 'gpgsig-sha256 -----BEGIN PGP SIGNATURE-----'])],
    ['a signature before the author', text([`tree ${A}`, 'gpgsig x', ...COMMIT.slice(2)])],
    ['an unknown header', text([...COMMIT, 'HG:extra x'])],
    ['an encoding twice', text([...COMMIT, 'encoding UTF-8', 'encoding UTF-8'])],
    ['an encoding that moves letters', text([...COMMIT, 'encoding UTF-7'])],
    ['an encoding of wide letters', text([...COMMIT, 'encoding UTF-16'])],
    ['an encoding without a value', text([...COMMIT, 'encoding '])],
    ['a merged tag before the committer', text([...COMMIT.slice(0, 3), ...MERGETAG, ...COMMIT.slice(3)])],
    ['a merged tag without an object', text([...COMMIT, 'mergetag type commit', ' tag v', ' '])],
    ['a merged tag that is not folded', text([...COMMIT, `mergetag object ${B}`, 'type commit'])],
    ['a merged tag of another header', text([...COMMIT, ...MERGETAG.slice(0, 3), ' author x', ' ', ' m'])],
    ['too many bytes', text(COMMIT, 'x'.repeat(MAX_SIGN_BYTES))],
    ['bad UTF-8 in the message', Buffer.concat([bytes(text(COMMIT)), Buffer.from([0xff])])],
    ['overlong UTF-8', Buffer.concat([bytes(text(COMMIT)), Buffer.from([0xc0, 0xaf])])],
    ['half a surrogate', Buffer.concat([bytes(text(COMMIT)), Buffer.from([0xed, 0xa0, 0x80])])],
    ['a byte order mark', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes(text(COMMIT))])],
  ])('is not %s', (_name, value) => {
    expect(() => read(value)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^(invalid_request|payload_too_large)$/) }),
    )
  })

  test('that is refused is not repeated in the message', () => {
    for (const value of ['hunter2', text(['hunter2']), text([...COMMIT, 'hunter2 x']), 'tree hunter2\n\n'])
      expect(() => read(value)).toThrow(/^(?!.*hunter2).*git commit/)
  })
})

describe('a tag', () => {
  test('gives what it names and its tagger', () => {
    const tagger = { name: 'ci', email: 'ci@agents.example' }
    expect(read(text(TAG), 'git-tag')).toEqual({ target: A, author: undefined, committer: tagger })
  })

  test.each([
    ['of a tree', text(swap(TAG, 'type', 'type tree'))],
    ['with slashes', text(swap(TAG, 'tag', 'tag release/v1-ü'))],
    ['without a message', text(TAG, '')],
  ])('may be one %s', (_name, value) => {
    expect(read(value, 'git-tag').target).toBe(A)
  })

  test.each([
    ['a commit', text(COMMIT)],
    ['a tag without a tagger', text(swap(TAG, 'tagger'))],
    ['a tag with two', text([...TAG, `tagger ${ME} ${AT}`])],
    ['a tag of something else', text(swap(TAG, 'type', 'type note'))],
    ['a tag without a name', text(swap(TAG, 'tag', 'tag '))],
    ['a tag with a space in its name', text(swap(TAG, 'tag', 'tag v 1'))],
    ['a tag with a caret in its name', text(swap(TAG, 'tag', 'tag v^1'))],
    ['a tag with a header of its own', text([...TAG, 'gpgsig x'])],
    ['a signed tag', text(TAG, 'm\n-----BEGIN PGP SIGNATURE-----\n\nx\n')],
    ['a tag signed with ssh', text(TAG, 'm\n-----BEGIN SSH SIGNATURE-----\nx\n')],
    ['a text', 'hello\n\nworld\n'],
  ])('is not %s', (_name, value) => {
    expect(() => read(value, 'git-tag')).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  })
})

describe('the identity of its author', () => {
  const me = { name: 'ci', email: 'ci@agents.example' }
  const commit = (author: string, committer: string) =>
    read(text([`tree ${A}`, `author ${author} ${AT}`, `committer ${committer} ${AT}`]))
  const OTHER = 'Eve <eve@x.example>'
  const check = (rule: SigningIdentity, author: string, committer: string) => () =>
    requireIdentity(commit(author, committer), me, rule)

  test('strict wants both, committer one, any none', () => {
    const pairs = [
      [ME, ME],
      [OTHER, ME],
      [ME, OTHER],
      [OTHER, OTHER],
    ] as const
    const allowed = (rule: SigningIdentity) =>
      pairs.map(([author, committer]) => {
        try {
          check(rule, author, committer)()
          return true
        } catch (error) {
          expect(error).toMatchObject({ code: 'not_allowed', status: 403 })
          return false
        }
      })
    expect(allowed('strict')).toEqual([true, false, false, false])
    expect(allowed('committer')).toEqual([true, true, false, false])
    expect(allowed('any')).toEqual([true, true, true, true])
  })

  test.each([
    'Ci <ci@agents.example>',
    'ci <CI@agents.example>',
    'ci  <ci@agents.example>',
    ' ci <ci@agents.example>',
    'ci <ci@agents.example >',
    'ci <ci@agents.example.com>',
    'сi <ci@agents.example>',
    'ci\u200b <ci@agents.example>',
    'ci via Eve <ci@agents.example>',
  ])('%j only looks the same', (person) => {
    expect(check('strict', person, ME)).toThrow(/^The author is not ci <ci@agents\.example>/)
    expect(check('committer', ME, person)).toThrow(/^The committer is not ci/)
  })

  test('a tagger is asked for like a committer', () => {
    const tag = read(text(swap(TAG, 'tagger', `tagger ${OTHER} ${AT}`)), 'git-tag')
    expect(() => requireIdentity(tag, me, 'strict')).toThrow(/^The tagger is not ci/)
    expect(() => requireIdentity(tag, me, 'committer')).toThrow(/^The tagger is not ci/)
    expect(() => requireIdentity(tag, me, 'any')).not.toThrow()
  })
})
