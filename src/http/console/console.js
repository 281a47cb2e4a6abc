// The page where operators log in. Text from the server is only ever put into `textContent`.
const KEY = 'mayfly.key'
const element = (id) => document.getElementById(id)

/** A refusal of the server; `code` is that of docs/reference/errors.md. */
class Refusal extends Error {
  constructor(status, { code, message, options } = {}) {
    super(message ?? 'The server cannot be reached; try again.')
    this.status = status
    this.code = code
    this.options = options
  }
}

async function send(method, path, body, confirmation) {
  const key = localStorage.getItem(KEY)
  const reply = await fetch(path, {
    method,
    credentials: 'same-origin',
    headers: {
      ...(key === null ? {} : { 'Mayfly-Console': key }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(confirmation === undefined ? {} : { 'Mayfly-Confirmation': confirmation }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const value = reply.status === 204 ? undefined : await reply.json()
  if (!reply.ok) throw new Refusal(reply.status, value?.error)
  return value
}

/** Sends a request, and confirms it with a passkey if the server asks for that. */
async function act(method, path, body) {
  try {
    return await send(method, path, body)
  } catch (error) {
    if (error.code !== 'confirmation_required' || error.options?.challenge === undefined) throw error
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(error.options)
    const answer = await navigator.credentials.get({ publicKey })
    return send(method, path, body, base64url(JSON.stringify(answer.toJSON())))
  }
}

const base64url = (text) =>
  btoa(String.fromCharCode(...new TextEncoder().encode(text)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')

function show(section) {
  for (const id of ['login', 'naming', 'home']) element(id).hidden = id !== section
}

function say(text) {
  element('message').textContent = text
  element('message').hidden = text === ''
}

/** Runs what a person asked for, and says what went wrong. */
async function attempt(work) {
  say('')
  try {
    await work()
  } catch (error) {
    // Another tab may have logged out.
    if (error.status === 401 && (localStorage.getItem(KEY) !== null || !element('home').hidden)) {
      localStorage.removeItem(KEY)
      show('login')
    }
    say(
      error.name === 'NotAllowedError'
        ? 'The passkey was not used: it was cancelled, or took too long.'
        : error.message,
    )
  }
}

async function logInByPasskey() {
  const { options } = await send('POST', '/v1/console/login/options')
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
  const answer = await navigator.credentials.get({ publicKey })
  await enter(await send('POST', '/v1/console/login/passkey', { assertion: answer.toJSON() }))
}

async function followLink(link) {
  const followed = await send('POST', '/v1/console/login/link', { link })
  if (followed.key !== undefined) return enter(followed)
  show('naming')
  element('naming-form').onsubmit = (event) => {
    event.preventDefault()
    const [name, email] = [element('naming-name').value.trim(), element('naming-email').value.trim()]
    attempt(async () =>
      enter(await send('POST', '/v1/console/login/link', { link: followed.link, name, email })),
    )
  }
}

async function enter({ key }) {
  localStorage.setItem(KEY, key)
  await showHome()
}

async function showHome() {
  const me = await send('GET', '/v1/admin/me')
  const [passkeys, sessions] = await Promise.all([
    send('GET', `/v1/admin/operators/${me.id}/passkeys`),
    send('GET', `/v1/admin/sessions?operator=${me.id}`),
  ])
  element('who').textContent = `${me.name} (${me.email})`
  element('scopes').textContent = `Scopes: ${[...me.scopes, ...me.backend_scopes].join(', ') || 'none'}`
  element('passkeys').replaceChildren(
    ...passkeys.map(({ id, name, created_at, last_used, works_here }) =>
      row(
        `${name}, registered ${time(created_at)}, ${last_used === null ? 'not used yet' : `last used ${time(last_used)}`}${works_here ? '' : ', of another address of this server: it does not work any more'}`,
        'Remove',
        () => act('DELETE', `/v1/admin/operators/${me.id}/passkeys/${id}`),
      ),
    ),
  )
  element('sessions').replaceChildren(
    ...sessions.map(({ id, user_agent, ip_address, last_used, current }) =>
      current
        ? row(`${user_agent} from ${ip_address}: this session`)
        : row(`${user_agent} from ${ip_address}, last used ${time(last_used)}`, 'End', () =>
            act('DELETE', `/v1/admin/sessions/${id}`),
          ),
    ),
  )
  show('home')
}

const time = (text) => new Date(text).toLocaleString()

function row(text, label, work) {
  const item = document.createElement('li')
  item.append(`${text} `)
  if (label === undefined) return item
  const button = document.createElement('button')
  button.type = 'button'
  button.textContent = label
  button.onclick = () =>
    attempt(async () => {
      await work()
      await showHome()
    })
  item.append(button)
  return item
}

async function register() {
  const name = element('passkey-name').value.trim()
  const { options } = await send('POST', '/v1/console/passkeys/options')
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
  const made = await navigator.credentials.create({ publicKey })
  await act('POST', '/v1/console/passkeys', { name, registration: made.toJSON() })
  await showHome()
}

async function logOut() {
  await send('POST', '/v1/console/logout')
  localStorage.removeItem(KEY)
  show('login')
}

element('login-passkey').onclick = () => attempt(logInByPasskey)
element('logout').onclick = () => attempt(logOut)
element('register-form').onsubmit = (event) => {
  event.preventDefault()
  attempt(register)
}

/** Whether the address had a link. Its secret is then neither there nor in the history. */
function takeLink() {
  const link = new URLSearchParams(location.hash.slice(1)).get('link')
  if (location.hash !== '') history.replaceState(null, '', location.pathname)
  if (link !== null) attempt(() => followLink(link))
  return link !== null
}

show('login')
if (!takeLink() && localStorage.getItem(KEY) !== null) attempt(showHome)
// A link that is pasted while the page is open loads nothing.
addEventListener('hashchange', takeLink)
