-- Which server this is.
--@ identity
return {now, 'run', run}
