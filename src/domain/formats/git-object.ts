import { MAX_SIGN_BYTES } from '../limits.ts'
import { invalid, Problem } from '../problems.ts'

/** An agent's key signs git objects only. */
export type SigningPurpose = 'git-commit' | 'git-tag'

export interface GitPerson {
  /** One character a byte; equal to the text where that is ASCII. */
  readonly name: string
  readonly email: string
}

/** The parts of a commit or tag that decide whether it may be signed. */
export interface GitObject {
  /** Hex id of a commit's tree, or of what a tag names. */
  readonly target: string
  /** Undefined for tags. */
  readonly author: GitPerson | undefined
  /** A tag's tagger. */
  readonly committer: GitPerson
}

const OID = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/
/** `name <e-mail> seconds zone`, as git writes it: no bracket and no control character in either part. */
const PERSON = /^([ -;=?-~\x80-\xff]{1,512}) <([ -;=?-~\x80-\xff]{1,512})> (?:0|[1-9]\d{0,11}) [+-]\d{4}$/
/** Of `i18n.commitEncoding`, those that leave ASCII as it is: in any other, the names would read differently. */
const ENCODING =
  /^(?:utf-?8|(?:us-)?ascii|iso-?8859-\d{1,2}|latin-?\d{1,2}|(?:cp|windows-)125\d|koi8-[ru]|euc-(?:jp|kr|cn|tw)|gbk|gb2312|gb18030|big5)$/i
/** Visible characters, without those that no reference may hold. */
const TAG_NAME = /^[!-)+-9;->@-Z\]_-}\x80-\xff]{1,512}$/
const SIGNED = /^-----BEGIN [A-Z ]+-----/m
const MAX_PARENTS = 256

/**
 * Reads the object strictly: each header once, in the order of git, and no other headers. Throws `Problem` for any
 * other data, including an object that is already signed.
 */
export function readGitObject(bytes: Uint8Array, purpose: SigningPurpose): GitObject {
  if (bytes.length > MAX_SIGN_BYTES)
    throw new Problem('payload_too_large', {
      message: `A git object of more than ${MAX_SIGN_BYTES} bytes is not signed.`,
    })
  const text = toBinary(bytes)
  if (text.includes('\0')) throw invalid('The git object contains a NUL.')
  return purpose === 'git-tag' ? readTag(text, bytes) : readCommit(text, bytes)
}

function readCommit(text: string, bytes: Uint8Array): GitObject {
  const { headers } = split(text, 'commit')
  const tree = headers.take('tree', OID)
  for (let parents = 0; headers.next === 'parent'; parents += 1) {
    const parent = headers.take('parent', OID)
    if (parents === MAX_PARENTS || parent.length !== tree.length) throw headers.bad('parent')
  }
  const author = readPerson(headers.take('author', PERSON))
  const committer = readPerson(headers.take('committer', PERSON))
  const encoding = headers.next === 'encoding' ? headers.take('encoding', ENCODING) : undefined
  while (headers.next === 'mergetag') readMergedTag(headers.takeFolded('mergetag'))
  headers.end()
  if (encoding === undefined) requireUtf8(bytes, 'commit')
  return { target: tree, author, committer }
}

function readTag(text: string, bytes: Uint8Array): GitObject {
  const { headers, message } = split(text, 'tag')
  const target = headers.take('object', OID)
  headers.take('type', /^(?:commit|tree|blob|tag)$/)
  headers.take('tag', TAG_NAME)
  const committer = readPerson(headers.take('tagger', PERSON))
  headers.end()
  requireUtf8(bytes, 'tag')
  // A tag's signature is at the end of the message: with a second one it would be unclear what was signed.
  if (SIGNED.test(message)) throw invalid('The git tag is already signed.')
  return { target, author: undefined, committer }
}

/** Somebody else's tag that a merge carries along, with its signature. */
function readMergedTag(text: string): void {
  const { headers } = split(text, 'mergetag')
  headers.take('object', OID)
  headers.take('type', /^commit$/)
  headers.take('tag', TAG_NAME)
  if (headers.next === 'tagger') headers.take('tagger', PERSON)
  headers.end()
}

function split(text: string, what: string): { headers: Headers; message: string } {
  const end = text.indexOf('\n\n')
  if (end < 0) throw invalid(`The data is not a git ${what}: its headers do not end.`)
  return { headers: readHeaders(text.slice(0, end).split('\n'), what), message: text.slice(end + 2) }
}

interface Headers {
  /** Name of the next header. */
  readonly next: string | undefined
  /** Value of the next header; throws if it is another header or the value has another form. */
  take(name: string, form: RegExp): string
  /** The value with its continuation lines, which begin with a space in the object. */
  takeFolded(name: string): string
  end(): void
  bad(name: string): Problem
}

function readHeaders(lines: readonly string[], what: string): Headers {
  let at = 0
  const nameAt = () => lines[at]?.split(' ', 1)[0]
  const bad = (name: string) =>
    invalid(`The data is not a git ${what} in git's own form: "${name}" is missing, misplaced or malformed.`)
  const takeLine = (name: string): string => {
    const line = lines[at]
    if (line === undefined || !line.startsWith(`${name} `)) throw bad(name)
    at += 1
    return line.slice(name.length + 1)
  }
  return {
    get next() {
      return nameAt()
    },
    take(name, form) {
      const value = takeLine(name)
      if (!form.test(value)) throw bad(name)
      return value
    },
    takeFolded(name) {
      const folded = [takeLine(name)]
      for (let line = lines[at]; line?.startsWith(' '); line = lines[at]) {
        folded.push(line.slice(1))
        at += 1
      }
      return `${folded.join('\n')}\n`
    },
    end() {
      if (nameAt()?.startsWith('gpgsig') === true) throw invalid(`The git ${what} is already signed.`)
      if (at < lines.length)
        throw invalid(`The git ${what} has a header that is unknown, misplaced or repeated.`)
    },
    bad,
  }
}

function readPerson(value: string): GitPerson {
  const [, name = '', email = ''] = PERSON.exec(value) ?? []
  return { name, email }
}

function requireUtf8(bytes: Uint8Array, what: string): void {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw invalid(`The git ${what} is not valid UTF-8 and names no encoding.`)
  }
}

/** One character a byte. */
function toBinary(bytes: Uint8Array): string {
  const parts: string[] = []
  for (let at = 0; at < bytes.length; at += 4_096)
    parts.push(String.fromCharCode(...bytes.subarray(at, at + 4_096)))
  return parts.join('')
}
