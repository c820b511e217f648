import { LabIcon } from '@jupyterlab/ui-components';

/** A chip on a card; drawn for this extension. */
export const gpuIcon = new LabIcon({
  name: 'gpu-workbench:gpu',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" width="16">
  <g class="jp-icon3" fill="#616161">
    <path d="M1 2h1.2v12H1z"/>
    <path fill-rule="evenodd" d="M3 4h12v7H3zm1.2 1.2v4.6h9.6V5.2z"/>
    <path fill-rule="evenodd" d="M7.5 5.7a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6zm0 1a.8.8 0 1 1 0 1.6.8.8 0 0 1 0-1.6z"/>
    <path d="M10.5 6h2.3v.9h-2.3zm0 2.1h2.3V9h-2.3z"/>
    <path d="M4.5 11h1v1.5h-1zm2 0h1v1.5h-1zm2 0h1v1.5h-1z"/>
  </g>
</svg>`
});
