import { randomBytes } from 'node:crypto'

/*
 * The forms of placeholders. Some clients look at a token before they send it: Octokit tells installation tokens by `ghs_`, many tools
 * check `sk-ant-` or `glpat-`. Only letters, digits, `_`, `-` and `.` are in one, so it is the same in a URL, in JSON and in a shell.
 */

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const ALPHANUMERIC = `${LETTERS}${LETTERS.toLowerCase()}0123456789`
const BASE32 = `${LETTERS}234567`
const HEX = '0123456789abcdef'
/** 2100-01-01: the placeholder lives as long as the run, the token behind it is renewed. */
const FAR = 4_102_444_800

/** Beginnings that say of what kind a token is, and nothing of itself. With what else its form has. */
const PREFIXES: readonly (readonly [prefix: string, make: () => string])[] = [
  ['github_pat_', () => `${text(22)}_${text(59)}`],
  ['ghp_', () => text(36)],
  ['gho_', () => text(36)],
  ['ghu_', () => text(36)],
  ['ghs_', () => text(36)],
  ['ghr_', () => text(36)],
  ['glpat-', () => text(24)],
  ['gldt-', () => text(24)],
  ['glrt-', () => text(24)],
  ['sk-ant-oat01-', () => text(95)],
  ['sk-ant-api03-', () => text(95)],
  ['sk-ant-', () => text(95)],
  ['sk-svcacct-', () => text(64)],
  ['sk-proj-', () => text(64)],
  ['sk-or-v1-', () => text(64, HEX)],
  ['sk-', () => text(48)],
  ['hvs.', () => text(90)],
  ['hvb.', () => text(140)],
  ['s.', () => text(24)],
  ['ya29.', () => text(120)],
  ['glsa_', () => `${text(32)}_${text(8, HEX)}`],
  ['dp.st.', () => text(43)],
  ['dp.sa.', () => text(43)],
  ['dckr_pat_', () => text(27)],
  ['dckr_oat_', () => text(27)],
  ['npm_', () => text(36)],
  ['pypi-', () => text(90)],
  ['tskey-auth-', () => `k${text(11)}CNTRL-${text(32)}`],
  ['tskey-api-', () => `k${text(11)}CNTRL-${text(32)}`],
  ['sqp_', () => text(40, HEX)],
  ['squ_', () => text(40, HEX)],
  ['sqa_', () => text(40, HEX)],
  ['xoxb-', () => text(40)],
  ['xoxp-', () => text(40)],
  ['gsk_', () => text(52)],
  ['hf_', () => text(34)],
  ['ATATT', () => text(180)],
]

/** By kind and field, where the secret has none of these prefixes. `''` is the one value. */
const FORMS: Readonly<Record<string, Readonly<Record<string, () => string>>>> = {
  aws: {
    // 80 bits: access keys have 20 characters, which some programs check.
    access_key_id: () => `ASIA${text(16, BASE32)}`,
    secret_access_key: () => text(40),
    session_token: () => `FwoGZXIvYXdz${text(120)}`,
  },
  anthropic: { '': () => `sk-ant-oat01-${text(95)}` },
  openai: { '': () => `sk-${text(48)}` },
  github: { '': () => `ghs_${text(36)}` },
  gitlab: { '': () => `glpat-${text(24)}` },
  vault: { token: () => `hvs.${text(90)}` },
  gcp: { '': () => `ya29.${text(120)}` },
  azure: { '': jwt },
  kubernetes: { token: jwt },
  jwt: { '': jwt },
  gitea: { token: () => text(40, HEX) },
  grafana: { '': () => `glsa_${text(32)}_${text(8, HEX)}` },
  sonarqube: { token: () => `sqp_${text(40, HEX)}` },
  'terraform-cloud': { '': () => `${text(14)}.atlasv1.${text(67)}` },
  // Base64 of `id:key`, which some clients decode; of a length that needs no `=`.
  elasticsearch: { encoded_key: () => Buffer.from(`${text(20)}:${text(24)}`).toString('base64') },
}

const JWT = /^eyJ[\w-]+\.eyJ[\w-]+\.[\w-]*$/

/**
 * A new placeholder, of 128 random bits or more where the form has room. `secret`: what it stands for; of it only a known prefix and
 * whether it is a JWT are taken.
 */
export function placeholderFor(type: string, field: string, secret = ''): string {
  if (JWT.test(secret)) return jwt()
  const known = PREFIXES.find(([prefix]) => secret.startsWith(prefix))
  if (known !== undefined) return `${known[0]}${known[1]()}`
  const form = FORMS[type]?.[field]
  if (form !== undefined) return form()
  return /pass|pwd/i.test(field) ? text(32) : `mayfly_${text(32)}`
}

/** Readable as a JWT, and nothing more. */
function jwt(): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { iss: 'mayfly', sub: 'placeholder', jti: text(22), exp: FAR }
  return `${part({ alg: 'RS256', typ: 'JWT' })}.${part(claims)}.${text(86)}`
}

/** So many characters, each as likely as the others. */
function text(length: number, alphabet = ALPHANUMERIC): string {
  const most = 256 - (256 % alphabet.length)
  let made = ''
  while (made.length < length)
    for (const byte of randomBytes(length * 2))
      if (byte < most && made.length < length) made += alphabet[byte % alphabet.length]
  return made
}
