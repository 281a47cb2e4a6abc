/** A call of `gpg.program` by git: to sign, or anything else, which goes to the real gpg. */
export type GpgCall =
  | { readonly kind: 'sign'; readonly keyId: string | undefined; readonly statusFd: number | undefined }
  | { readonly kind: 'other' }

/** Short flags of gpg; `u` takes a value. */
const LETTERS = /^-([bsa]*)(u?)(.*)$/

/** Reads `--status-fd=2 -bsau <keyid>`, as git 2.39 writes it, and other spellings of the same call. */
export function readGpgArguments(argv: readonly string[]): GpgCall {
  const flags = new Set<string>()
  let keyId: string | undefined
  let statusFd: number | undefined
  const rest = [...argv]
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const [name, value] = word.startsWith('--') ? splitLong(word) : ['', undefined]
    if (name === 'status-fd') statusFd = readFd(value ?? rest.shift())
    else if (name === 'local-user') keyId = value ?? rest.shift()
    else if (name === 'detach-sign') flags.add('b').add('s')
    else if (name === 'sign') flags.add('s')
    else if (name === 'armor') flags.add('a')
    else if (name === 'batch' || name === 'no-tty' || name === 'keyid-format') continue
    else {
      const letters = LETTERS.exec(word)
      if (letters === null || word.startsWith('--') || word === '-') return { kind: 'other' }
      const [, plain = '', user = '', tail = ''] = letters
      for (const letter of plain) flags.add(letter)
      if (user === '' && tail !== '') return { kind: 'other' }
      if (user !== '') keyId = tail === '' ? rest.shift() : tail
    }
  }
  const isDetachedArmor = flags.has('b') && flags.has('a')
  return isDetachedArmor ? { kind: 'sign', keyId, statusFd } : { kind: 'other' }
}

function splitLong(word: string): [string, string | undefined] {
  const at = word.indexOf('=')
  return at < 0 ? [word.slice(2), undefined] : [word.slice(2, at), word.slice(at + 1)]
}

function readFd(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,3}$/.test(text) ? Number(text) : undefined
}

/** Whether `asked` (8 or more digits of the key id or fingerprint, perhaps with `0x` or `!`) means this key. */
export function isKey(asked: string, fingerprint: string): boolean {
  const id = asked.replace(/^0x/i, '').replace(/!$/, '').replaceAll(' ', '').toUpperCase()
  return /^[0-9A-F]{8,40}$/.test(id) && fingerprint.toUpperCase().endsWith(id)
}

/**
 * The status line that git waits for: `SIG_CREATED <type> <pk_algo> <hash_algo> <class> <timestamp> <fingerprint>`. The
 * server's keys are EdDSA (22) and sign with SHA-512 (10).
 */
export function sigCreatedLine(fingerprint: string, createdAt: number): string {
  return `\n[GNUPG:] SIG_CREATED D 22 10 00 ${Math.floor(createdAt / 1_000)} ${fingerprint}\n`
}
