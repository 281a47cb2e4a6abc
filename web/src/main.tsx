import { QueryClientProvider } from '@tanstack/react-query'
import { setNonce } from 'get-nonce'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { queries } from './api/queries.ts'
import { App } from './app.tsx'
import { lookAhead } from './shell/ahead.ts'
import { applyPreferences } from './ui/density.ts'
import './tokens.css'

// The one style element that a library makes, while a dialog is open (react-remove-scroll), carries the nonce of the page's CSP.
const nonce = document.querySelector<HTMLMetaElement>('meta[name=csp-nonce]')?.content
if (nonce !== undefined) setNonce(nonce)
lookAhead()
applyPreferences()

const root = document.getElementById('root')
if (root === null) throw new Error('the page has no #root')
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
)
