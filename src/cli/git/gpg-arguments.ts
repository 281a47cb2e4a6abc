/** What git asks of `gpg.program`: to sign, or anything else, which is for the real gpg. */
export type GpgCall =
  | { readonly kind: 'sign'; readonly keyId: string | undefined; readonly statusFd: number | undefined }
  | { readonly kind: 'other' }

/** Flags of gpg that stand alone; `u` takes what follows. */
const LETTERS = /^-([bsa]*)(u?)(.*)$/

/** `--status-fd=2 -bsau <keyid>`, as git 2.39 has it, and the same in other spellings. */
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

/** Whether the id that git was given (key id or fingerprint, of any length from 8, `0x` or `!` added) is this key's. */
export function isKey(asked: string, fingerprint: string): boolean {
  const id = asked.replace(/^0x/i, '').replace(/!$/, '').replaceAll(' ', '').toUpperCase()
  return /^[0-9A-F]{8,40}$/.test(id) && fingerprint.toUpperCase().endsWith(id)
}

/** The line that git waits for: `SIG_CREATED <type> <pk_algo> <hash_algo> <class> <timestamp> <fingerprint>`. */
export function sigCreatedLine(armored: string, fingerprint: string, createdAt: number): string {
  const { algorithm, hash } = readAlgorithms(armored)
  return `\n[GNUPG:] SIG_CREATED D ${algorithm} ${hash} 00 ${Math.floor(createdAt / 1_000)} ${fingerprint}\n`
}

/** From the signature packet (RFC 9580 §5.2.3); EdDSA with SHA-512 where it cannot be read. */
function readAlgorithms(armored: string): { algorithm: number; hash: number } {
  const body = /\r?\n\r?\n([\s\S]*?)(?:\r?\n=[^\n]*)?\r?\n-----END/.exec(armored)?.[1] ?? ''
  const packet = Buffer.from(body.replace(/\s/g, ''), 'base64')
  const lengthBytes = (packet[1] ?? 0) < 192 ? 1 : (packet[1] ?? 0) < 224 ? 2 : 5
  const [version, , algorithm, hash] = packet.subarray(1 + lengthBytes)
  return version === 4 && algorithm !== undefined && hash !== undefined
    ? { algorithm, hash }
    : { algorithm: 22, hash: 10 }
}
