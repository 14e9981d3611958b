import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { config } from 'zod';
import { queryClient } from './api/client.js';
import { router } from './app/router.js';
import { startTheme } from './app/theme.js';
import { startI18n } from './i18n/i18n.js';
import './styles.css';
import { TooltipProvider } from './ui/tooltip.js';

// The server's policy forbids code made from text, which zod would otherwise try first.
config({ jitless: true });
startTheme();
startI18n();

const root = document.querySelector('#root');
if (!root) throw new Error('index.html has no #root');
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <TooltipProvider delayDuration={300}>
        <RouterProvider router={router} />
      </TooltipProvider>
    </QueryClientProvider>
  </StrictMode>,
);
