import Anthropic from '@anthropic-ai/sdk'
import { Octokit } from '@octokit/rest'
import OpenAI from 'openai'

/* A child that works with an SDK, and knows nothing but its environment. `sdk.mjs NAME`: what each call gave, in JSON. */

const messages = [{ role: 'user', content: 'hello' }]

async function textOf(stream, read) {
  let text = ''
  for await (const event of stream) text += read(event) ?? ''
  return text
}

function anthropic() {
  const client = new Anthropic({ maxRetries: 0 })
  const asked = { model: 'claude-x', max_tokens: 5, messages }
  return {
    stream: async () =>
      textOf(await client.messages.create({ ...asked, stream: true }), (event) => event.delta?.text),
    call: async () => (await client.messages.create(asked)).content[0].text,
    path: () => client.get('/v1/organizations/api_keys'),
    method: () => client.put('/v1/messages', { body: asked }),
  }
}

function openai() {
  const client = new OpenAI({ maxRetries: 0 })
  const asked = { model: 'gpt-x', messages }
  return {
    stream: async () =>
      textOf(
        await client.chat.completions.create({ ...asked, stream: true }),
        (event) => event.choices[0]?.delta?.content,
      ),
    call: async () => (await client.chat.completions.create(asked)).choices[0].message.content,
    path: () => client.get('/organization/admin_api_keys'),
    method: () => client.put('/chat/completions', { body: asked }),
  }
}

function octokit() {
  const baseUrl = process.env.GITHUB_API_URL
  const client = new Octokit({ auth: process.env.GITHUB_TOKEN, ...(baseUrl && { baseUrl }) })
  const repository = { owner: 'Acme', repo: 'Shop' }
  return {
    stream: async () =>
      (await client.paginate(client.rest.issues.listForRepo, repository)).map(({ title }) => title).join(''),
    call: async () => (await client.rest.issues.create({ ...repository, title: 'hello' })).data.title,
    path: () => client.request('POST /graphql', { query: '{viewer{login}}' }),
    method: () => client.request('PUT /search/issues', { q: 'x' }),
  }
}

const done = {}
for (const [name, call] of Object.entries({ anthropic, openai, octokit }[process.argv[2]]())) {
  done[name] = await call().catch((error) => ({ error: error.message, status: error.status }))
}
console.log(JSON.stringify(done))
